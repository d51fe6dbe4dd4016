// Package fleet lets many machines upload one tree together. It is for uploads that
// take hours, on machines that have access to the same files and may be taken away at
// any time. For anything else, gcsup cp --shard is sufficient.
//
// [Submit] writes one message for each large file, and for each group of small ones, to a
// queue in NATS JetStream. A [Worker] takes messages and uploads their files. If a worker
// dies, another one continues its uploads at the committed offset.
//
// The queue only names files and objects. The saved upload in a bucket (package
// bucketstore) records the worker and the progress of an upload. The destination bucket
// decides which objects exist. The queue can therefore be lost at any time: submitting
// the same tree restores it.
//
// ../../README.md describes the command, and ../../DESIGN.md the messages and the streams.
package fleet
