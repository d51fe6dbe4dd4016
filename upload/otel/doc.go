// Package otel exports the uploads of package gcsup/upload as OpenTelemetry traces
// and metrics. It is a module of its own, so that programs without OpenTelemetry
// do not depend on it.
//
//	telemetry, err := otel.New(nil) // the global providers
//	...
//	up, err := upload.New(&http.Client{Transport: otel.Transport(base)}, &upload.Options{
//		Observer: telemetry.Observe,
//		Exchange: telemetry.Exchange,
//	})
//
// Set both hooks: the span of an upload begins with its first exchange or event, and
// ends with its terminal event. A program with its own Observer calls
// [Telemetry.Observe] in it.
//
// # Spans
//
// Each upload is one span, gcsup.upload, in the trace of the context of the call.
// It has the attributes
//
//	gcsup.bucket             the bucket
//	gcsup.object             the object's name; not with Options.OmitObject
//	gcsup.upload.id          the ID of the saved upload, if it has one
//	gcsup.outcome            done, skipped, planned, canceled, interrupted or failed
//	gcsup.size               of the source in bytes, if it is known
//	gcsup.generation         of the object, if there is one
//	gcsup.sent               bytes of object data that were sent, repeats included
//	gcsup.resent             the part of gcsup.sent that was sent before
//	gcsup.resumed            whether an earlier call began the upload
//	gcsup.resumed_from       the committed offset at which it continued; only if it was resumed
//	gcsup.resumable          whether a later call can continue it; only if it failed
//	gcsup.requests           HTTP requests
//	gcsup.retries            requests that were repeated or replaced by a query
//	error.type               the kind of the error, such as precondition, as in the JSON lines of gcsup
//
// and these span events
//
//	query      a status query: http.response.status_code, gcsup.offset (the committed one), error.type, gcsup.next
//	waiting    a request failed, the retry is later: gcsup.wait.duration in seconds, gcsup.wait.retry, gcsup.cause
//	lease_held another process has the saved upload: gcsup.wait.duration, gcsup.cause
//	input_waits      the input of a stream waits, because its spool is full: gcsup.cause
//	input_continues  the input is read again
//	restarted  the session was lost, the upload starts over: gcsup.cause
//	resumed    the session of a saved upload continues: gcsup.offset
//	discarded  a saved upload was not used: gcsup.cause
//	divided    one connection is slow, the file is sent in parts: gcsup.cause
//	warning    something is wrong that does not stop the upload: gcsup.cause
//
// Except for query, they have the names of the [upload.EventKind].
//
// gcsup.next is the decision that follows the reply, by the name of its [session.Step]:
// begin, send, finish, query, check, done or fail. It is not set if a local error or the
// end of the context ended the upload.
//
// The spans of [Transport], one for each HTTP request, are in the same trace. They
// are siblings of the upload's span and not its children.
//
// # Metrics
//
//	gcsup.upload.duration    histogram  s          time of each upload
//	gcsup.upload.size        histogram  By         size of each object that was made
//	gcsup.upload.active      updown     {upload}   uploads under way
//	gcsup.upload.sent        counter    By         bytes of object data that were sent, repeats included; added while they are sent
//	gcsup.upload.resent      counter    By         the part of gcsup.upload.sent that was sent before; added when an upload ends
//	gcsup.upload.restarts    counter    {restart}  sessions that were lost and replaced
//	gcsup.wait.duration      histogram  s          each wait before a retry, as it begins
//	gcsup.exchange.duration  histogram  s          each request until its reply was read
//
// All have gcsup.bucket. gcsup.upload.duration also has gcsup.outcome and error.type.
// gcsup.exchange.duration also has gcsup.operation, the name of a [session.Op] such as put,
// http.response.status_code and error.type: an error status, stalled, or transport if there was no
// reply. No metric has the name of an object.
//
// # Secrets
//
// No span and no metric has an encryption key or the URI of a session, which permits
// any client to write to the upload. Use [Transport]: without it, otelhttp exports
// the URI in url.full.
package otel
