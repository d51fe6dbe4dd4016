// Package fakegcs is a strict Cloud Storage server for tests and demos. It answers
// as the real service does, even if an upload goes wrong, and keeps objects in
// memory or in a directory.
//
// In a test, one call starts a server that ends with the test:
//
//	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
//
// Clients find it at srv.URL, by STORAGE_EMULATOR_HOST or their endpoint setting.
//
// Elsewhere, [New] returns an [http.Handler] for the HTTP server of the caller.
// Close the handler first and the HTTP server after it: requests that a fault
// stalls end when the handler is closed.
//
// # What it is strict about
//
//   - A resumable upload takes bytes only where the committed ones end. A gap is
//     refused, an overlap is skipped without comparing, a request that isn't the
//     last must have whole quanta of 256 KiB.
//   - Of a request that was cut off it keeps the whole quanta; the client has to
//     ask for the offset, which never decreases.
//   - A status query never makes an object of half an upload.
//   - Preconditions, X-Goog-Hash and declared checksums are held against the
//     object when all bytes are there. If one fails, there is no object.
//   - A session that is finished answers its object for ever, a cancelled one 499,
//     a dead one 410 with the cause inside, one that is not finished in a week 404.
//
// The facts are those of https://cloud.google.com/storage/docs/resumable-uploads
// and https://cloud.google.com/storage/docs/performing-resumable-uploads; where
// these are silent, what client libraries have recorded of the service. A chunk
// that isn't the last and has at least one quantum, but not a whole number, is
// cut down to whole quanta: reports of the service differ there.
//
// Requests on one session may come together, as they do when a client gives up
// a connection and the server hasn't noticed yet. A query waits until the
// server has taken in what a dead connection left behind, and then gives the
// final offset; while a living request sends slowly, the query soon gives what
// is committed so far. A data request takes a session over from one that has
// fallen silent.
//
// # Faults
//
// A [Fault] says to which requests what is to happen, how often. Plans are
// given in [Options.Faults], by [Server.AddFaults], as a JSON file
// ([ParseFaults]), or over HTTP. [Server.FaultReport] tells what fired.
//
// # Control over HTTP
//
//	GET    /_fakegcs/faults    the plan with counts
//	POST   /_fakegcs/faults    append to the plan: a JSON array, see ParseFaults;
//	                           with ?random=N&seed=S&size=BYTES those of RandomFaults
//	DELETE /_fakegcs/faults    clear the plan
//	GET    /_fakegcs/requests  the latest requests
//	GET    /_fakegcs/stats     totals
//	POST   /_fakegcs/clock     {"advance": "168h"} moves the clock forward
//	POST   /_fakegcs/token     an OAuth 2.0 token endpoint, see Options.RequireToken
//
// Google's Retry Test API (/retry_test, x-retry-test-id) is there as well, so
// that the conformance scenarios of client libraries run unchanged.
//
// # Storage and cost
//
// In memory, objects are kept as they came in, without a copy. With
// [Options.Dir] bytes go to their file as they arrive and are never read again
// before the object is; an upload needs less than a MiB of memory, whatever its
// size. A composed object shares the bytes of its sources. The directory survives
// the death of the server's process at any moment: finished objects and committed
// bytes are there when a server is started on it again. It is not made for the
// death of the machine, since nothing is fsynced.
//
// MD5 costs more than all else together; [Options.NoMD5] leaves it out. What a
// server process uses is measured by
//
//	go test -run '^$' -bench Server -benchtime 1x gcsup/fakegcs
//
// In discard mode that was 0.27 to 0.34 CPU seconds for each GiB and 32 MiB of
// memory, whatever the object's size, and less than 100 MiB with 100 uploads of
// 1 GiB at once. A directory adds what the file system costs.
//
// # What it leaves out
//
// Access control lists and IAM, notifications, HMAC keys, signed URLs (a
// signature is neither needed nor checked), listing by matchGlob and filter, and
// gRPC. What the server doesn't implement it refuses with 400, and names it once
// to Options.Logger. A field of a bucket or an object that it doesn't know is
// refused as well.
//
// Lifecycle rules, CORS, website, logging and rpo are checked and kept, but nothing
// acts on them. Encryption keys are checked, but nothing is encrypted.
//
// A total in Content-Range that differs from that of an earlier request is refused
// with 400. What the service does then is not documented, and nobody has recorded
// it; Google's test bench compares a total only with X-Upload-Content-Length.
//
// It is known to differ in these: a new bucket has no soft delete, where the
// service's have seven days of it; a hold that was released is left out of the
// metadata instead of being false; a default event-based hold can't be declined by
// an upload; a bucket may be in any location; the owner of a bucket whose requester
// pays has to name a project, too; an update (PUT) leaves what it doesn't name; a
// request that is repeated with its X-Goog-Gcs-Idempotency-Token acts again. What else it does is stated in
// package fakegcstest, with sources.
//
// # Virtual time
//
// The server works inside a testing/synctest bubble over the network of package
// pipenet, and there an outage of an hour takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
//		ln, dial := pipenet.Listen()
//		srv := &http.Server{Handler: gcs}
//		go srv.Serve(ln)
//		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
//		// Upload with client to http://fake.invalid, then:
//		client.CloseIdleConnections()
//		gcs.Close()
//		srv.Close()
//	})
package fakegcs
