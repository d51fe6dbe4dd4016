// Package bucketstore saves uploads in a bucket, so that several machines can see
// them: an upload that one machine began is resumed by another, at the committed
// offset, when the first one dies.
//
// The two calls are [Open], which returns a [session.Store] for the option Store of
// package upload, and [Store.Warnings], whose texts a program should show to its
// user:
//
//	store, err := bucketstore.Open(ctx, client, "my-state", "uploads", &bucketstore.Options{AEAD: aead})
//	if err != nil {
//		return err
//	}
//	up, err := upload.New(hc, &upload.Options{Store: store})
//
// # Leases
//
// Each upload is one object. A process that works on the upload holds a lease, which
// is in the metadata of the object: who holds it, and for how long. A lease is
// acquired, renewed and released by replacing the object with the precondition
// ifGenerationMatch, so that of two processes one succeeds. The generation is the
// fencing number. https://cloud.google.com/storage/docs/request-preconditions
//
// The holder renews its lease in the background. It begins no request after 7/8 of
// [Options.TTL] since it sent the last successful renewal, by its monotonic or its wall
// clock, whichever shows more: a suspended machine stops one of them. Another process
// may acquire the lease when TTL has passed since the service stored the renewal. It
// compares two times of the service, the time of the object and the Date of the reply,
// and never its own clock. The clocks of the machines therefore need not agree.
//
// # Guarantees
//   - A request that begins, begins before another process acquired the lease. A
//     request that is under way when the holder is suspended cannot be stopped. Its
//     bytes are those of the source, and the service orders the requests of a session.
//   - A crash between any two requests loses nothing: the object has the upload as
//     it was saved last.
//   - An error of the service, such as status 429 for too many writes to one object, is
//     retried and ends no upload.
//
// # Cost
//
// The service allows about one write per second to an object, and bills each. A lease
// takes one write when it is acquired and one when it is released. While the upload
// runs, there is one save per TTL/2, or one renewal per 5/8 TTL if nothing must be
// saved. With the default TTL that is at most one write per minute, or 0.0003 USD per
// hour and upload. docs/shared-state.md has the details.
//
// # Secrets
//
// A saved upload has the URI of its session, which is a bearer secret. It is sealed
// with [Options.AEAD]. In a bucket with versioning or soft delete, replaced objects are
// kept, and with them the URIs of earlier sessions: [Store.Warnings].
package bucketstore
