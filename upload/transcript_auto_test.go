package upload_test

import (
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/upload"
)

// autoTranscripts are the decisions of Parts.Auto, and the resumption of each. The transcripts of
// partsTranscripts have the uploads in parts when the rate of one connection is known.
var autoTranscripts = []transcript{
	{
		name: "29-auto-fast-connection-in-a-second-process",
		about: `Parts.Auto does not know the rate of one connection yet, so it begins with one session. The first
16 MiB are fast, and the file stays in this session. The process is killed in the next request. The
second process resumes the session. It does not decide again, because the bytes of a session cannot
become a part.`,
		url: docUpload,
		run: func(s *scribe) { s.killed(random(20*mib), faults.OpPut, autoMultipart, in18MiB) },
	},
	{
		name: "30-auto-small-file",
		about: `Parts.Auto sends a file over one connection if it is smaller than the minimum, which is 150 MiB,
and 1 MiB here. Even if a single connection is known to be slow, no request precedes the session.`,
		url:  docUpload,
		opts: farAway(),
		run:  func(s *scribe) { s.upload(random(4*q-1), upload.Spec{}, autoCompose, inParts) },
	},
	{
		name: "31-auto-bucket-forbids-parts",
		about: `A single connection is slow, so several may be faster. A multipart upload has no preconditions,
and this object must not exist yet. The bucket has a retention policy, so temporary objects could
not be deleted. Parts.Auto sends the file over one connection.`,
		url:  docCompose,
		opts: farAway(),
		run: func(s *scribe) {
			s.unrecorded(func() { s.w.patchBucket(`{"retentionPolicy":{"retentionPeriod":"100"}}`) })
			s.upload(random(6*q), upload.Spec{IfGenerationMatch: new(int64)}, autoCompose, inParts)
		},
	},
	{
		name: "32-auto-slow-connection",
		about: `The file begins in a session, whose first bytes show that a connection is slow. The session is
canceled, and the file is sent in parts of a multipart upload.`,
		url:  docMultipart,
		opts: slowConnection(),
		run:  func(s *scribe) { s.upload(random(twoParts), upload.Spec{}, autoMultipart) },
	},
	{
		name: "33-auto-slow-connection-in-a-second-process",
		about: `As before, but the process is killed in the second part. The second process does not know the
rate of a connection. What is saved is in parts, so that it does not measure it: it asks which parts
the service has, and sends the second one.`,
		url:  docXML + "get-object-multipart",
		opts: slowConnection(),
		run:  func(s *scribe) { s.killed(random(twoParts), faults.OpPartsPut, autoMultipart) },
	},
	{
		name: "34-auto-changes-its-mind",
		about: `The file begins in a session, whose first bytes show that a connection is slow. The object must
not exist yet, so the parts can only be composed. But the storage class of the bucket makes temporary
objects costly. Parts.Auto sends the file over one connection after all.`,
		url:  docCompose,
		opts: slowConnection(),
		run: func(s *scribe) {
			s.unrecorded(func() { s.w.patchBucket(`{"storageClass":"NEARLINE"}`) })
			s.upload(random(9*mib), upload.Spec{IfGenerationMatch: new(int64)}, autoCompose)
		},
	},
}

// slowConnection returns options for a service that answers at once and limits each connection to
// 4 MiB/s.
func slowConnection() fakegcs.Options { return fakegcs.Options{Rate: 4 * mib} }

// autoMultipart sends a file as Parts.Auto chooses, in parts of at least 5 MiB.
func autoMultipart(o *upload.Options) {
	o.Parallel = upload.AutoPartsFrom(0, multipart.MinPart, multipart.MinPart)
}

// autoCompose sends a file of at least 1 MiB as Parts.Auto chooses, in parts of at least 768 KiB.
func autoCompose(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, mib, 3*q) }

// in18MiB makes the first request carry enough for a decision.
func in18MiB(o *upload.Options) { o.ChunkSize = 18 * mib }
