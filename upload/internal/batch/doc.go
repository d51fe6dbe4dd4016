// Package batch decides which files of a batch are uploaded. A [Merge] looks up sorted
// names in a listing, [CompareTime] compares a file with its object, and a [Breaker]
// stops the remaining files after failures. It knows no jobs, transfers or events.
package batch
