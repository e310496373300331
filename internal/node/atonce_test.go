//go:build !race

package node

// atOnce is how many tests run at the same time. Most of them wait for timers and other
// processes, so there are more than the two cores of a small machine.
// With many more they wait for each other, and requests for longer than clients do.
const atOnce = 5
