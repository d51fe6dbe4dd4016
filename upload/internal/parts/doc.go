// Package parts sends one file in parts over several connections, and makes one object from
// them. [Planner.Plan] returns how a new upload is sent, or the [Reasons] to use one connection.
// [Upload.Send] sends what is missing, makes the object, and compares it with the source. The
// parts are temporary objects that are composed, or the parts of a multipart upload
// of the XML API. The [saved.Journal] has the state of each part.
//
// The package knows no jobs or batches. The order of the steps of a saved upload (resume, start
// over, remove) is that of package upload.
//
// # Guarantees
//   - The service checks the CRC32C of each part.
//   - A failure removes nothing that a later call can use.
//   - Only what this upload made is removed. A saved upload records what could not be removed.
//   - A part that the service no longer has is sent again, after a second answer confirms that.
package parts
