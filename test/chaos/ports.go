package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
)

// freePorts returns ports below those that the system assigns: a server that is down for a moment
// must find its port free.
func freePorts(n int) (ports []int, err error) {
	const from, to = 20000, 32000
	for tries := 0; len(ports) < n; tries++ {
		port := from + rand.IntN(to-from)
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, port))
		if err != nil || slices.Contains(ports, port) {
			if tries > to {
				return nil, fmt.Errorf("no free port: %w", err)
			}
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
