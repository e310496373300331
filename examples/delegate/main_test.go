package main

func Example() {
	main()
	// Output:
	// History: Mostly one person. Verdict: It holds.
	// root     editor
	// root-1-0 historian
	// root-1-1 critic
	// the pool paid for all: true
}
