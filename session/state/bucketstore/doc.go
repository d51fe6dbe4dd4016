// Package bucketstore saves uploads in a bucket, so that several machines can share
// them. If a machine dies, another one resumes its uploads at the committed offset.
//
// [Open] returns a [state.Store] for the option Store of package upload. A program
// should also show the texts of [Store.Warnings] to its user:
//
//	store, err := bucketstore.Open(ctx, client, "my-state", "uploads", &bucketstore.Options{AEAD: aead})
//	if err != nil {
//		return err
//	}
//	up, err := upload.New(hc, &upload.Options{Store: store})
//
// # Leases
//
// Each upload is one object. A process that works on the upload holds a lease. The
// metadata of the object records its holder and duration. A lease is
// acquired, renewed and released by replacing the object with the precondition
// ifGenerationMatch. If two processes do so at the same time, only one succeeds. The
// generation is the fencing number.
// https://cloud.google.com/storage/docs/request-preconditions
//
// The holder renews its lease in the background. It begins no request later than 7/8 of
// [Options.TTL] after it sent the last successful renewal. It measures this with its
// monotonic and its wall clock and uses the longer time, because one of them stops while
// the machine is suspended. Another process may acquire the lease when TTL has passed
// since the service stored the renewal. Only the service's clock decides that. If the lease
// seems to have expired, by the Date of a reply or by its own clocks, the other process
// writes an object, and compares the update times of this object and of the renewal. The
// clocks of the machines need not agree.
//
// On Linux, another process on the same machine, and in the same PID namespace, need not
// wait for a holder that has ended: it acquires the lease at once.
//
// # Guarantees
//   - Once another process has acquired the lease, the former holder begins no request.
//     A request that is under way when the holder is suspended cannot be stopped. Its
//     bytes are those of the source, and the service orders the requests of a session.
//   - A crash between any two requests loses nothing: the object has the upload as
//     it was last saved.
//   - An error of the service, such as status 429 for too many writes to one object, is
//     retried for [Options.RetryFor], or, if that is 0, like the requests of the upload
//     that waits. After that, the error wraps [session.ErrRetriesExhausted], and [ErrSlow]
//     if the bucket answers too slowly for the TTL.
//
// # Cost
//
// The service allows about one write per second to an object, and bills each. Acquiring a
// lease takes one write, and releasing it another. Acquiring a lease that another process
// left takes two writes. While the upload runs, there is one save per TTL/2, or one
// renewal per 5/8 TTL if nothing must be saved. With the default TTL there is at most one
// write per minute, which costs 0.0003 USD per hour for each upload. Uploads in
// parts and compressed files need more writes. A compressed file is saved before each request
// of its session, or before each part that an earlier save did not include. The request or
// part waits for the save, so that about one can begin per second.
// docs/how-to/shared-state.md has the details.
//
// # Secrets
//
// A saved upload has the URI of its session, which is a bearer secret. It is sealed
// with [Options.AEAD]. A bucket with versioning or soft delete keeps replaced objects,
// and with them the URIs of earlier sessions. [Store.Warnings] reports that.
package bucketstore
