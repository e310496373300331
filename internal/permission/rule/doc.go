// Package rule compares command lines with rules such as "git log:*". Allowed understands a line in
// order to let it run, and fits only what it understands in full; Find looks for a command in a line in
// order to deny it, and finds it wherever it may hide. Both parse the line as the shells do that may run it.
package rule
