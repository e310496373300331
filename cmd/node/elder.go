//go:build !younger

package main

// younger is by how much the rules of this build are newer than those of its source.
const younger = 0
