package main

func Example() {
	main()
	// Output:
	// Salve, world!
	// completed after 2 turns
}
