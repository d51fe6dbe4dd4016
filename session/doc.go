// Package session implements Cloud Storage's resumable upload protocol, one
// HTTP exchange at a time. It also decides the next step after each reply.
//
// See https://cloud.google.com/storage/docs/resumable-uploads and
// https://cloud.google.com/storage/docs/performing-resumable-uploads for the
// protocol.
//
// Most programs should use package upload. Use this package to drive a session step by
// step. Package gcsup/session/state saves uploads, for example in your own database.
//
// # The two calls
//
// A driver alternates two calls: a method of [Client], which makes one
// exchange, and [Decide], which returns the next step. Decide is a pure function from
// ([State], [Reply]) to (State, [Action]), with no clock and no I/O.
//
// The methods of Client are [Client.Start], [Client.Put], [Client.Query],
// [Client.Finalize] and [Client.Cancel]. [Client.Insert] uploads a small object in one
// request, and [Client.Stat] reads the metadata of one. [Client.Do] makes any other
// exchange. None of them waits or retries. Only Stat may make two requests. Each returns a
// [Reply], even if no reply arrived.
//
// # Guarantees
//   - The committed offset of the service is authoritative, and never decreases within
//     a session.
//   - After an ambiguous failure the next request is a query, never data.
//   - The session URI is a bearer secret. A [URI] redacts itself when printed,
//     logged or marshaled. No function of this package reveals it. A URI from a
//     store is refused unless it belongs to the configured endpoint and bucket, see
//     [Client.Adopt]. The URI is also the URL of each request: wrap a transport that
//     records URLs, such as that of OpenTelemetry, with [Traced].
//
// # Errors
//
// The error of an [Action] is an [Error], which wraps a sentinel error and the
// cause. The table at [ErrInvalid] lists the sentinel errors, and what to do. Check
// them with [errors.Is].
package session
