// Package batch decides which files of a batch are uploaded. It knows no jobs, transfers or
// events, and makes no requests.
//
// The two main calls are [Merge.Lookup], which looks up sorted names in a listing, and
// [FailFast.Err], which stops the remaining files after failures. [CompareTime] compares a
// file with its object.
//
// # Guarantees
//   - A Merge keeps two pages of the listing in memory: the current one and the next one.
//   - A name that is out of order, or a listing that fails, gives no wrong answer: the remaining
//     names are not looked up.
//   - FailFast stops no file because of an outage while another upload progresses.
package batch
