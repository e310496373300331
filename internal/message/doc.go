// Package message handles messages of an agent by themselves: their size in an entry, whether a provider would accept
// them as they are, and how they read as text. Package agent/history has the transcripts that they are part of.
package message
