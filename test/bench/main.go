// Command bench compares troupe with a floor and with its peers: the same workloads in every
// column, each measurement in a process of its own, the columns interleaved in rounds. It
// prints medians and ratios. docs/benchmarks.md says what the columns and workloads are.
//
//	cd test/bench && go run . -rounds 5
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := runCommand(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runCommand() error {
	rounds := flag.Int("rounds", 5, "how often each measurement is made")
	work := flag.String("work", "", "workloads, separated by commas; default: all but the long ones")
	names := flag.String("columns", "", "columns, separated by commas; default: all")
	short := flag.Bool("short", false, "two rounds of 200 ms, for a first look")
	least := flag.Duration("duration", time.Second, "how long a measurement repeats its workload at least")
	check := flag.Bool("check", false, "measure only what the limits need, and fail if a ratio is above its limit")
	list := flag.Bool("list", false, "list workloads and columns")
	profiles := flag.String("profiles", "", "directory for CPU and allocation profiles of each measurement")
	serve := flag.Bool("serve", false, "be the model server (used by the program itself)")
	child := flag.String("child", "", "make one measurement, WORKLOAD/COLUMN (used by the program itself)")
	once := flag.String("once", "", "run one agent of a column (used by the program itself)")
	server := flag.String("server", "", "address of the model server (used by the program itself)")
	scratch := flag.String("scratch", "", "scratch directory (used by the program itself)")
	flag.Parse()
	if *short {
		*rounds, *least = 2, 200*time.Millisecond
	}
	switch {
	case *serve:
		return serveModel()
	case *child != "":
		return runChild(*child, *server, *scratch, *profiles, *least)
	case *once != "":
		return runOnce(*once, *server, *scratch)
	case *list:
		printLists()
		return nil
	}
	p, err := newPlan(*work, *names, *profiles)
	if err != nil {
		return err
	}
	p.rounds, p.least = *rounds, *least
	if *check {
		return p.check(os.Stdout)
	}
	all := results{}
	if err := p.measureInto(all); err != nil {
		return err
	}
	all.writeTable(os.Stdout, p)
	return nil
}

func newPlan(work, names, profiles string) (p plan, err error) {
	p.progress = os.Stderr
	p.only = func(string, string) bool { return true }
	p.workloads, err = selectNamed(workloads(), func(w workload) string { return w.name }, func(w workload) bool { return !w.long }, work, errWorkload)
	if err != nil {
		return p, err
	}
	p.columns, err = selectNamed(columns(), func(c column) string { return c.name }, func(column) bool { return true }, names, errColumn)
	if err != nil {
		return p, err
	}
	p.profiles, err = profileDir(profiles)
	return p, err
}

func printLists() {
	for _, w := range workloads() {
		fmt.Printf("%-15s %s\n", w.name, w.what)
	}
	fmt.Println()
	for _, c := range columns() {
		fmt.Printf("%-17s %s\n", c.name, c.what)
	}
}
