// Package examples has one small file for each way in which a program can use gcsup.
// It is a separate module, and uses only the public API:
//
//   - backup.go copies a directory and reports its progress.
//   - before and after have the same service with storage.Writer and with
//     upload.Writer.
//   - proxy.go uploads the bodies of HTTP requests, with limits for their size, their time
//     and their number. A client that disconnects leaves no object.
//   - jobs.go resumes uploads after a restart, with the state in SQLite
//     (sqlitestore.go).
//   - steps.go drives a session with its own loop.
//   - command.go uploads the output of a command, if the command succeeds.
//   - relay.go copies from another server, and resumes.
//   - client.go uses its own HTTP client and credentials.
//   - tracing.go exports traces and metrics.
//   - totals.go knows only the storage library. Its test replaced another emulator.
//   - ownclient.go is a resumable client without a library. Its test checks it with fakegcstest.CheckClient.
//   - outage_test.go tests an outage of an hour in no time.
//
// Each has a test that runs it with the emulator, package gcsup/fakegcs.
package examples
