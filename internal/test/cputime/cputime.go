// Package cputime measures work by the time of the processors that it takes. On a machine that does other work too, the
// clock measures that work as well.
package cputime
