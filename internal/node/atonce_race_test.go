//go:build race

package node

// atOnce is 1 under the race detector: each test takes many times the CPU, and leases and
// requests do not wait for longer.
const atOnce = 1
