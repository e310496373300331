// Package sim is the seeded simulator of a run.
package sim
