// Package mirror makes the objects below a prefix equal to the files of a directory: it uploads
// what differs, and deletes the objects that have no file.
//
//	m, err := mirror.New("photos", upload.Spec{Bucket: "my-bucket", Object: "backup"}, nil)
//	...
//	for o, err := range m.Run(ctx, up) {
//		...
//	}
//
// [Mirror.Plan] yields what would be done and does nothing. [Mirror.Run] does it. [Mirror.Check]
// compares, and also yields the objects without a file.
//
// # Guarantees
//
//   - An object is deleted only by the generation that was listed. An object that was replaced
//     after that is kept, and reported with [session.ErrPrecondition].
//   - Objects are deleted only after every file was uploaded or found to be the same, and if
//     every directory was read. Otherwise the last error wraps [ErrIncomplete].
//   - No object is deleted if there are no files ([ErrNoFiles]), or if more objects have no file than
//     [Options].MaxDelete allows ([ErrTooManyDeletions]). Both are checked before the first deletion.
//   - Only names below the prefix are deleted. The prefix is a directory: "p" does not include the
//     object "pq/x".
//   - In a bucket with hierarchical namespace, a folder below the prefix is deleted only if the run deleted an
//     object in it, and the service confirms that it is empty. Managed folders are never deleted.
//   - An object with a [Reason] is not deleted, except Excluded with [Options].DeleteExcluded.
//   - Memory does not grow with the number of files and objects. The names of the objects that
//     will be deleted are in a temporary file, if they need more than 8 MiB.
//
// After a failure, an interruption or a crash, run the mirror again. It needs no state.
//
// # Order
//
// A plan is a merge of the files and the listing. Both are in the order of the raw bytes of the
// names. If one is not in this order, the run ends with an error before anything is deleted.
package mirror
