// Package browser drives the page of a node in a real Chromium (`make browser`).
package browser
