// Package fleet lets many machines upload one tree together. It is for hours of uploads
// on machines that see the same files and may be taken away at any time. For anything
// else gcsup cp --shard is enough.
//
// [Submit] writes one message per large file, or per group of small ones, to a queue in
// NATS JetStream. A [Worker] takes messages and uploads their files. Another worker
// continues the upload of one that died, at the committed offset.
//
// The queue only names files and objects. Who works on an upload, and how
// far it is, is in the saved upload in a bucket (package bucketstore), and the bucket
// decides which objects exist. The queue can therefore be lost at any time: submitting
// the same tree restores it.
//
// README.md describes the messages, the streams and the command.
package fleet
