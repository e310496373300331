package main

func Example() {
	main()
	// Output:
	// stop.proposed
	// stop.vetoed Name the evidence.
	// stop.proposed
	// stop.allowed
	// The build is broken. Evidence: ci.log:42
	// completed
}
