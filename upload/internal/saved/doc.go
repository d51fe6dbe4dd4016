// Package saved has the life of a saved upload: its lease, its checkpoints, its move to another
// source, and the list of those in a store. It knows no requests, no events, and not the steps
// of an upload.
//
// The two main calls are [Open], which acquires the lease of an upload and returns its [Journal],
// and [Journal.RecordFile], which returns the [SessionRecord] of a session. [Journal.RecordPart] does the
// same for a part. What sends the bytes reports to the SessionRecord, and the Journal writes the saved upload.
//
// # Guarantees
//   - The store has a saved upload of the upload before a byte is sent. If a later save fails, it keeps
//     the earlier saved upload.
//   - No older saved upload replaces a newer one.
//   - After another process has acquired the lease, nothing is saved or deleted.
//   - A crash during a move leaves one usable saved upload.
package saved
