// Package manifest records the outcome of each file of a batch in a file, so that
// the batch can continue after a crash or a failure:
//
//	m, err := manifest.Open("upload.jsonl", uploader.Endpoint())
//	...
//	for job, err := range m.Skip(ctx, jobs) {
//		...                                              // upload the job
//		if record, ok := manifest.NewRecord(result, err); ok {
//			err = m.Record(record)
//		}
//	}
//	err = m.Close()
//
// In the next run, [Manifest.Skip] leaves out the jobs that are finished and whose
// source is unchanged. Jobs that failed, and those without a record, remain.
//
// # Format
//
// A manifest has one JSON object per line:
//
//	{"v":1,"time":"2026-11-22T10:00:00.123Z","status":"done","source":"a.txt",
//	 "identity":{"size":5,"mod_time_ns":1,"change_time_ns":2,"device":3,"inode":4},
//	 "destination":"gs://my-bucket/a.txt","endpoint":"https://storage.googleapis.com",
//	 "generation":"1763769254000001","crc32c":"yZRlqg=="}
//
// The status is done, skipped or failed. A failed file has an error, which is
// text for people. A link or a socket that was skipped has an error too, and no
// identity. The source is the path as it was given; bytes that are not UTF-8 are
// replaced. If a destination has several records at one endpoint, the last one counts.
//
// A manifest holds no secret, but names of files. It is created with mode 0600.
//
// # Guarantees
//
//   - [Manifest.Record] appends with one write. From then on, a record survives the
//     end of the process. It survives a power loss about a second later, or after
//     [Manifest.Close].
//   - After a crash in the middle of a write, [Open] removes the incomplete last
//     line. Its file is uploaded again.
//   - A line that is damaged in another place is ignored and counted, see
//     [Stats]. Its file is uploaded again, unless it has another record.
//   - One process at a time has a manifest open. The lock is FILE.lock.
//   - Memory does not grow with the number of records: Skip sorts them on disk,
//     in temporary files beside the manifest.
//
// A manifest records no options except the endpoint. Use another manifest if the options change. Skip does not read the
// bucket. If objects may have been deleted or replaced, use [Check], or give Skip jobs that [upload.Uploader.Lookup]
// looked up.
package manifest
