//go:build !race

package wiretest

// lostByPools is how many more allocations a call may make because a pool has lost what it was given.
const lostByPools = 0
