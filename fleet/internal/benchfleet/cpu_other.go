//go:build !unix

package main

// cpuSeconds returns 0: this system does not report the CPU time.
func cpuSeconds() float64 { return 0 }
