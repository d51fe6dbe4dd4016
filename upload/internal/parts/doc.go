// Package parts sends one file in parts over several connections, and makes one object from
// them. [Plan.Choose] decides how a new upload is divided, or returns the [Reason] to use one
// connection. [Upload.Send] sends what is missing, makes the object, and compares it with the
// source. The parts are temporary objects that are composed, or the parts of a multipart upload
// of the XML API. The journal of package saved has the state of each part.
//
// It knows no jobs, batches or Options. The order of the steps of a saved upload (resume, start
// over, remove) is that of a job, in package upload.
package parts
