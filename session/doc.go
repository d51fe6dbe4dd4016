// Package session speaks Cloud Storage's resumable upload protocol, one HTTP
// exchange at a time, and decides what to do with each answer.
//
// It is the layer between the bytes (package chunk) and the driver (package
// upload). Most programs want package upload; use this one to drive a session
// by hand, to keep sessions in a database of your own (see [Store]), or to
// read the decision table.
//
// # Doing
//
// A [Client] performs exactly one exchange per method: [Client.Start],
// [Client.Put], [Client.Query], [Client.Finalize], [Client.Cancel], and beside
// the session [Client.Insert] (a small object in one request) and
// [Client.Stat]. None of them loops, waits or retries. Each returns a [Reply],
// also when no answer arrived.
//
// # Knowing
//
// [Decide] is a pure function from ([State], [Reply]) to (State, [Action]). It
// has no clock and does no I/O, so every sequence of replies can be tried out.
// The two calls of a driver are one of the Client's methods, and Decide with
// what it returned.
//
// # Keeping
//
// A [Token] is what another process needs to go on with an upload; a [Store]
// keeps Tokens; [OpenDir] is a Store in a directory.
//
// # Guarantees
//
//   - The server's answer is the truth and ours is a guess:
//     0 <= Committed <= Sent <= Size, and Committed never decreases within a
//     session.
//   - After an ambiguous failure the next request is a query, never data.
//   - The session URI is a bearer secret. A [URI] redacts itself in every
//     print, log and marshal; only [Encode] writes it out. One that comes from
//     a store is refused unless it belongs to the configured endpoint and
//     bucket. It is also in the URL of each request: a transport that records
//     URLs, such as that of OpenTelemetry, must be made with [Traced].
//   - Load and List of a Store change nothing. The holder of the upload's lock
//     sets a damaged Token aside; one of a newer program is left alone.
//
// The protocol: https://cloud.google.com/storage/docs/resumable-uploads and
// https://cloud.google.com/storage/docs/performing-resumable-uploads.
package session
