// Package fakegcs is a strict Cloud Storage server for tests and demos. It was never
// run beside the real service. CI compares its replies with public recordings of the
// service, which have no data requests of a resumable upload: see docs/emulator/emulator.md. It
// keeps objects in memory or in a directory.
//
// In a test, one call starts a server that ends with the test:
//
//	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
//
// Clients find it at srv.URL, by STORAGE_EMULATOR_HOST or their endpoint setting.
// A second call makes requests fail, here the next three that send data:
//
//	err := srv.AddFaults(faults.Fault{
//		Match: faults.Match{Op: faults.OpPut}, Times: 3,
//		Do:    faults.Action{Effect: faults.EffectCutRequest, Bytes: 300_000},
//	})
//
// A plan of faults can also come from [Options].Faults, from a file ([faults.Parse]),
// from a seed ([faults.Random]), or over HTTP. [Server.FaultReport] returns how often
// each fault acted.
//
// Elsewhere, [New] returns an [http.Handler] for the HTTP server of the caller. Close
// the handler first and the HTTP server after it: requests that a fault stalls end
// when the handler is closed. With package memnet it works inside a testing/synctest
// bubble, where an outage of an hour takes no time.
//
// # Guarantees
//
//   - A resumable upload accepts bytes only where the committed bytes end.
//     A gap is refused. An overlap is skipped without comparing it. A request that
//     is not the last must have 256 KiB or more, and is cut down to a multiple.
//   - If a request is cut off, the server keeps whole multiples of 256 KiB of it.
//     The client must query the offset, which never decreases without a fault.
//   - A status query never finalizes an incomplete upload.
//   - Preconditions and declared checksums are checked when all bytes are there. If
//     one fails, there is no object.
//   - A finished session always returns its object. A canceled session returns 499, a
//     session that a fault ended 410 with the cause in its body, and a session that is not
//     finished within a week 404.
//   - Requests on one session may overlap. A query waits until the server has read
//     the remaining bytes of a dead connection, and then returns the final offset.
//   - Nothing that the service would act on is ignored silently. Unknown fields are
//     refused with 400, except retentionExpirationTime in a [Retention]. What the
//     server does not implement is refused with 400 and logged once.
//   - With [Options].Dir, finished objects and committed bytes survive a kill of the
//     process at any moment, but not a crash of the machine. An upload of any size
//     needs less than 1 MiB of memory.
//
// This behavior follows recordings of the service, or else its documentation, or else the
// observations of client libraries. Package fakegcstest lists the facts with their
// sources.
//
// # Limits
//
// Access control lists, IAM policies and HMAC keys are kept as they are set, and not
// enforced. gRPC is not implemented. A signed URL works, but
// its signature is not checked. Objects with an encryption key are not encrypted. The
// page docs/emulator/emulator.md lists the known differences from the service, the paths that
// control the server over HTTP, and what a server costs.
package fakegcs
