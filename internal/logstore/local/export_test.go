package local

// Sampled is sampled, for the tests outside of the package.
var Sampled = sampled
