package main

func Example() {
	main()
	// Output:
	// purse deny nobody refunds more than 100
	// evidence block Name the evidence.
	// The refund was refused. Evidence: denied by hook purse: nobody refunds more than 100
}
