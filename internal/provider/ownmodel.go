package provider

// DefinedByProgram is the reason for a model that a program provides in Go: no other process has it.
const DefinedByProgram = "defined by this program"
