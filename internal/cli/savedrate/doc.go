// Package savedrate keeps the rates of requests that buckets accept in a directory, for the next
// processes on the machine.
package savedrate
