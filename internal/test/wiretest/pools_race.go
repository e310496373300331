//go:build race

package wiretest

// lostByPools: under the race detector a sync.Pool loses a quarter of what it is given, on purpose.
const lostByPools = 1
