//go:build !younger

package main

// younger is the number by which this build raises its rules version above the version in
// the source.
const younger = 0
