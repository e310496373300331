package main

func Example() {
	main()
	// Output: pieces to order: 8
}
