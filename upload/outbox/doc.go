// Package outbox uploads what appears in a directory, and removes each file when its object was
// verified, unless [Options].Then keeps or moves it.
//
//	box, err := outbox.Open("/var/spool/out", up, upload.Spec{Bucket: "my-bucket", Object: "in/"}, nil)
//	...
//	defer box.Close()
//	err = box.Run(ctx) // until ctx is done
//
// The file a/b becomes the object in/a/b. Files and directories whose names begin with a dot are
// ignored, and so is everything that is not a regular file.
//
// # When a file is complete
//
// A file is uploaded when no program writes to it any more. On a local file system of Linux, a
// file that a process has open for writing is not complete, and these files are complete as soon
// as they are closed:
//
//   - a file that [Put] made;
//   - a file that was renamed, or linked, into the directory after its last change.
//
// Any other file is complete when it was not changed for [Options].Settle. This is also the rule for
// all files on other systems and file servers, and for files of other users.
//
// # What is removed
//
// A file is removed only if the metadata of its object, which is read last, has the size and the
// CRC32C of the bytes that were read, and the file has not changed since, see
// [upload.CallOptions].Dispose. It is renamed to a private name first, compared again, and then
// removed. A file that changed, was opened for writing, or was replaced by another one, is sent again.
//
// No symbolic link below the directory is followed, so that users who can write to it cannot make the process read or
// remove files elsewhere. The directories .outbox and .failed must belong to the user of the process.
//
// # Failures
//
// A file that fails waits with a growing backoff and does not stop other files. After
// [Options].Attempts it is moved to the directory .failed, with the reason in a file beside it.
// [Retry] moves it back. A failure that is not about the file, such as an outage, counts only if
// another file was uploaded since the previous attempt. A refusal of the service may be caused by
// wrong settings. It counts only if another file was uploaded since the start, or with Ordered.
//
// Two attempts are enough if a third attempt could not change the answer: a hold or a retention
// protects the object, the request is invalid, or the directory of [MoveTo] cannot have a file of
// that name. If the credentials do not permit reading objects, no file can be removed: nothing is
// sent again, and Run ends with an [*UnreadableError] after two such answers.
//
// If there is no space to save a large upload, it begins unsaved, because the removal of its
// file makes space. If the process ends meanwhile, the upload starts over.
//
// With [Options].Ordered, files are uploaded one at a time in the order of their names. A file that
// is not complete, or fails, blocks all later ones. After Options.Attempts, Run ends with a
// [*StoppedError], and the file stays where it is.
//
// # Crashes
//
// The process may be killed at any moment. The next process finds the files that are left.
// Such a file may have been uploaded already: it is compared with its object first, and is
// not sent again if the bytes are equal. Large files resume, if the Uploader has a Store.
//
// The directory .outbox belongs to this package. It has the lock of the process, the private names
// of files that are being removed, the record of uploaded files with [Keep], and the status for
// [ReadStatus].
package outbox
