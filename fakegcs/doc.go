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
//   - A resumable upload accepts bytes only where the committed bytes end. A gap
//     is refused. An overlap is skipped without comparing it. A request that is
//     not the last must have a multiple of 256 KiB.
//   - Of a request that was cut off, the server keeps whole multiples of 256 KiB.
//     The client must query the offset, which never decreases.
//   - A status query never finalizes half an upload.
//   - Preconditions, X-Goog-Hash and declared checksums are checked when all bytes
//     are there. If one fails, there is no object.
//   - A finished session always returns its object. A cancelled session returns
//     499, a dead one 410 with the cause inside, and one that is not finished
//     within a week 404.
//
// The facts are those of https://cloud.google.com/storage/docs/resumable-uploads
// and https://cloud.google.com/storage/docs/performing-resumable-uploads; where
// these are silent, what client libraries have recorded of the service. A chunk
// of more than 256 KiB that is neither the last nor a multiple of 256 KiB is cut
// down to one: reports of the service differ there.
//
// Requests on one session may overlap, for example if a client abandons a
// connection and the server has not noticed yet. A query waits until the server
// has read what a dead connection left behind, and then returns the final offset.
// While another request sends slowly, the query soon returns the offset so far. A
// data request adopts a session from a request that has fallen silent.
//
// # Faults
//
// A [Fault] makes a chosen request fail in a chosen way. A plan of faults comes
// from [Options.Faults], [Server.AddFaults], a JSON file ([ParseFaults]), or over
// HTTP. [Server.FaultReport] returns what fired.
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
// [Options.Dir], bytes go to their file as they arrive. An upload of any size
// needs less than 1 MiB of memory. A composed object shares the bytes of its
// sources. The directory survives the death of the server's process at any
// moment: the next server on it has the finished objects and the committed bytes.
// It does not survive the death of the machine, since nothing is fsynced.
//
// MD5 costs more than everything else together; [Options.NoMD5] disables it. This
// measures a server process:
//
//	go test -run '^$' -bench Server -benchtime 1x gcsup/fakegcs
//
// In discard mode the result was 0.27 to 0.34 CPU seconds per GiB, and 32 MiB of
// memory for an object of any size. 100 uploads of 1 GiB at once needed less than
// 100 MiB. A directory adds the cost of the file system.
//
// # What it leaves out
//
// Access control lists and IAM, notifications, HMAC keys, signed URLs (a
// signature is neither needed nor checked), listing by matchGlob and filter, and
// gRPC. The server refuses what it does not implement with 400, and logs it once.
// It also refuses unknown fields of a bucket or an object.
//
// Lifecycle rules, CORS, website, logging and rpo are checked and kept, but nothing
// acts on them. Encryption keys are checked, but nothing is encrypted.
//
// A total in Content-Range that differs from that of an earlier request is refused
// with 400. What the service does then is neither documented nor recorded;
// Google's test bench compares a total only with X-Upload-Content-Length.
//
// Known differences from the service:
//
//   - A new bucket has no soft delete; the service's have seven days of it.
//   - A hold that was released is missing in the metadata instead of false.
//   - An upload cannot decline a default event-based hold.
//   - A bucket may be in any location.
//   - The owner of a bucket whose requester pays must name a project.
//   - An update (PUT) keeps what it does not name.
//   - A request that is repeated with its X-Goog-Gcs-Idempotency-Token acts again.
//
// Package fakegcstest states what else the server does, with sources.
//
// # Virtual time
//
// The server works inside a testing/synctest bubble over the network of package
// memnet, and there an outage of an hour takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
//		ln, dial := memnet.Listen()
//		srv := &http.Server{Handler: gcs}
//		go srv.Serve(ln)
//		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
//		// Upload with client to http://fake.invalid, then:
//		client.CloseIdleConnections()
//		gcs.Close()
//		srv.Close()
//	})
package fakegcs
