package main

// ofManners are the rules of the loop's manners.
var ofManners = []Mutant{}
