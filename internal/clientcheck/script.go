package clientcheck

import (
	"slices"
	"time"

	"gcsup/fakegcs/faults"
)

// Granularity is the unit of 256 KiB in which the service commits an upload.
const Granularity = 256 << 10

// Script is one situation in which a client must do the right thing.
type Script struct {
	Name string // unique
	Does string // what happens to the client
	// Fact is what the script assumes about the service. Source is where that is documented or was
	// observed: a URL, or a description of a recording.
	Fact, Source string
	// Disputed, if not empty, is the evidence against Fact. A disputed script is run and reported,
	// but does not count.
	Disputed string

	Size   func(base int64) int64          // of the source; nil is base, a multiple of 256 KiB
	Faults func(size int64) []faults.Fault // nil: none
	// Exists: another object has the name from the start. Appears: another client makes such an
	// object when half of the bytes have arrived.
	Exists, Appears bool
	CutEnd          bool // the connection breaks before the last byte of the object
	Kill            bool // the first run is killed when half of the bytes have arrived, and there is a second one
	Change          bool // the source has other bytes in the second run
	// Damages: the service may refuse the last request because of a checksum, without a mistake of
	// the client.
	Damages bool
	// MayFail: the client may fail, if it says so and there is no object.
	MayFail bool
}

// Sources of facts.
const (
	guide     = "https://cloud.google.com/storage/docs/performing-resumable-uploads"
	overview  = "https://cloud.google.com/storage/docs/resumable-uploads"
	codes     = "https://cloud.google.com/storage/docs/json_api/v1/status-codes"
	retries   = "https://cloud.google.com/storage/docs/retry-strategy"
	checksums = "https://cloud.google.com/storage/docs/data-validation"
	condition = "https://cloud.google.com/storage/docs/request-preconditions"
	github    = "https://github.com/"
)

// Scripts returns all scripts, in the order in which they are reported.
func Scripts() []Script {
	return slices.Concat(
		sizeScripts(), replyScripts(), statusScripts(), sessionScripts(), connectionScripts(), strangerScripts(),
		objectScripts(), restartScripts(), partScripts(),
	)
}

// A place selects the data requests that carry one byte of the source.
type place func(size int64) faults.Match

func first(int64) faults.Match       { return faults.Match{From: 0, To: 1} }
func middle(size int64) faults.Match { return faults.Match{From: size / 2, To: size/2 + 1} }
func last(size int64) faults.Match   { return faults.Match{From: size - 1, To: size} }

// at makes one request at a place fail.
func at(p place, do faults.Action) func(int64) []faults.Fault {
	return func(size int64) []faults.Fault { return []faults.Fault{{Match: p(size), Do: do}} }
}

// inSession is at for an effect that only a session has. A client that sends the object in one
// request outside of a session does not meet it.
func inSession(p place, do faults.Action) func(int64) []faults.Fault {
	return func(size int64) []faults.Fault {
		put, finalize := p(size), p(size)
		put.Op, finalize.Op = faults.OpPut, faults.OpFinalize
		return []faults.Fault{{Match: put, Do: do}, {Match: finalize, Do: do}}
	}
}

// on makes the first request of an operation fail.
func on(op faults.Op, do faults.Action) func(int64) []faults.Fault {
	return func(int64) []faults.Fault { return []faults.Fault{{Match: faults.Match{Op: op}, Do: do}} }
}

func status(code int) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: code}
}

func page(code int) faults.Action {
	const text = "<html><body>Welcome to the guest network</body></html>"
	return faults.Action{Effect: faults.EffectStatus, Status: code, Body: text}
}

// both returns the faults of a and b.
func both(a, b func(int64) []faults.Fault) func(int64) []faults.Fault {
	return func(size int64) []faults.Fault { return append(a(size), b(size)...) }
}

func fixed(n int64) func(int64) int64 { return func(int64) int64 { return n } }

// sizeScripts returns the scripts without a fault. The size is what they are about.
func sizeScripts() []Script {
	const multiple = "A chunk that is not the last is a multiple of 256 KiB. Content-Range names the first and the " +
		"last byte, and the last chunk the total."
	return []Script{
		{
			Name:   "plain",
			Does:   "The source has one byte more than a multiple of 256 KiB. Nothing fails.",
			Fact:   multiple,
			Source: guide,
			Size:   func(base int64) int64 { return base + 1 },
		}, {
			Name: "empty",
			Does: "The source is empty.",
			Fact: "An empty object is made by Content-Range: bytes */0, or by a request without a body. bytes " +
				"0-0/0 names one byte.",
			Source: github + "scylladb/scylladb/issues/31224",
			Size:   fixed(0),
		}, {
			Name:   "one-byte",
			Does:   "The source has one byte.",
			Fact:   multiple,
			Source: guide,
			Size:   fixed(1),
		}, {
			Name:   "below-256k",
			Does:   "The source has 256 KiB less one byte.",
			Fact:   multiple,
			Source: guide,
			Size:   fixed(Granularity - 1),
		}, {
			Name:   "256k",
			Does:   "The source has 256 KiB.",
			Fact:   multiple,
			Source: guide,
			Size:   fixed(Granularity),
		}, {
			Name:   "above-256k",
			Does:   "The source has 256 KiB and one byte.",
			Fact:   multiple,
			Source: guide,
			Size:   fixed(Granularity + 1),
		}, {
			Name:   "8m",
			Does:   "The source has 8 MiB.",
			Fact:   multiple,
			Source: guide,
			Size:   fixed(8 << 20),
		}, {
			Name:   "whole-chunks",
			Does:   "The source ends where a chunk ends: it has 32 MiB, or --size.",
			Fact:   multiple,
			Source: guide,
			// 16 MiB is the chunk of clients that send the default size in two.
			Size: func(base int64) int64 {
				if base == DefaultSize {
					return 32 << 20
				}
				return base
			},
		},
	}
}

// replyScripts returns the scripts about replies of a session that say how much is committed.
func replyScripts() []Script {
	short := func(n int64) faults.Action { return faults.Action{Effect: faults.EffectShortCommit, Bytes: n} }
	const next = "The next request begins after the last byte in Range, whatever was sent. Without Range nothing is " +
		"committed."
	return []Script{
		{
			Name:   "nothing-stored",
			Does:   "The service keeps nothing of the first data request, and answers 308 without Range.",
			Fact:   next,
			Source: guide,
			Faults: inSession(first, short(1<<40)),
		}, {
			Name:   "part-stored",
			Does:   "The service keeps 256 KiB less of the first data request than it got.",
			Fact:   next,
			Source: guide,
			Faults: inSession(first, short(Granularity)),
		}, {
			Name:   "part-stored-later",
			Does:   "The service keeps 256 KiB less of a later data request than it got.",
			Fact:   next,
			Source: guide,
			Faults: inSession(middle, short(Granularity)),
		}, {
			Name:   "range-missing",
			Does:   "The service keeps the first data request, and answers 308 without Range.",
			Fact:   "A 308 without Range can come although bytes were kept. The service ignores bytes that it has.",
			Source: github + "googleapis/google-cloud-cpp/issues/7835",
			Faults: func(int64) []faults.Fault {
				m := faults.Match{Op: faults.OpPut, To: 1}
				return []faults.Fault{{Match: m, Do: faults.Action{Effect: faults.EffectNoRange}}}
			},
		}, {
			Name: "all-stored",
			Does: "The service has all bytes, and answers 308 to the last request. It makes the object when it is " +
				"asked again.",
			Fact:   "A 308 can name all bytes. A status query with the total makes the object.",
			Source: github + "googleapis/google-cloud-cpp/issues/8868",
			Faults: inSession(last, faults.Action{Effect: faults.EffectNotFinal}),
		}, {
			Name:   "final-reply-cut",
			Does:   "The reply to the last request breaks off after 20 bytes. The object exists.",
			Fact:   "A finished session returns its object for every request.",
			Source: github + "googleapis/java-storage JsonResumableSessionFailureScenario",
			Faults: at(last, faults.Action{Effect: faults.EffectCutReply, Bytes: 20}),
		},
	}
}

// statusScripts returns the scripts about errors that pass.
func statusScripts() []Script {
	const fact = "408, 429 and 5xx are to be retried after a wait."
	const query = "After an error, a status query returns how much is committed."
	after := func(code int) func(int64) []faults.Fault {
		return func(size int64) []faults.Fault {
			do := faults.Action{Effect: faults.EffectStatusAfter, Status: code, Bytes: size/2 + Granularity}
			return []faults.Fault{{Match: middle(size), Do: do}}
		}
	}
	return []Script{
		{
			Name:   "503-start",
			Does:   "The start of the upload gets 503.",
			Fact:   fact,
			Source: retries,
			Faults: on(faults.OpStart, status(503)),
		}, {
			Name:   "503-before",
			Does:   "A data request gets 503, and nothing of it is kept.",
			Fact:   fact,
			Source: retries,
			Faults: at(middle, status(503)),
		}, {
			Name:   "503-after",
			Does:   "A data request gets 503. Its bytes up to 256 KiB after the middle of the object are kept.",
			Fact:   query,
			Source: guide,
			Faults: after(503),
		}, {
			Name:   "503-last",
			Does:   "The last data request gets 503, and nothing of it is kept.",
			Fact:   fact,
			Source: retries,
			Faults: at(last, status(503)),
		}, {
			Name:   "503-query",
			Does:   "A data request gets 503, and so does the status query after it.",
			Fact:   query,
			Source: guide,
			Faults: both(at(middle, status(503)), on(faults.OpQuery, status(503))),
		}, {
			Name:   "500",
			Does:   "A data request gets 500.",
			Fact:   fact,
			Source: retries,
			Faults: at(middle, status(500)),
		}, {
			Name:   "429",
			Does:   "A data request gets 429.",
			Fact:   fact,
			Source: retries,
			Faults: at(middle, status(429)),
		}, {
			Name:   "429-start",
			Does:   "The start of the upload gets 429.",
			Fact:   fact,
			Source: retries,
			Faults: on(faults.OpStart, status(429)),
		}, {
			Name:   "408",
			Does:   "A data request gets 408.",
			Fact:   fact,
			Source: retries,
			Faults: at(middle, status(408)),
		},
	}
}

// sessionScripts returns the scripts about sessions that end.
func sessionScripts() []Script {
	const fact = "If a session is gone, the client starts a new one, and sends all bytes again."
	return []Script{
		{
			Name:   "404",
			Does:   "The session is unknown in the middle of the upload: 404.",
			Fact:   fact,
			Source: codes,
			Faults: inSession(middle, faults.Action{Effect: faults.EffectNotFound}),
		}, {
			Name:   "410",
			Does:   "The session ends in the middle of the upload: 410.",
			Fact:   fact,
			Source: codes,
			Faults: inSession(middle, faults.Action{Effect: faults.EffectGone}),
		}, {
			Name:   "410-around-429",
			Does:   "The session ends in the middle of the upload: 410, whose body has 429.",
			Fact:   "The body of a 410 can have the error that ended the session, such as 429.",
			Source: github + "learningequality/studio/issues/964",
			Faults: inSession(middle, faults.Action{Effect: faults.EffectGone, Status: 429}),
		}, {
			Name:    "499",
			Does:    "Another client cancels the session in the middle of the upload: 499.",
			Fact:    "A canceled session answers 499.",
			Source:  guide,
			Faults:  inSession(middle, faults.Action{Effect: faults.EffectCanceled}),
			MayFail: true,
		},
	}
}

// connectionScripts returns the scripts about connections that break.
func connectionScripts() []Script {
	const fact = "If a connection breaks, a status query returns how much is committed: a multiple of 256 KiB, not all " +
		"that was sent."
	cut := func(n int64) faults.Action { return faults.Action{Effect: faults.EffectCutRequest, Bytes: n} }
	return []Script{
		{
			Name:   "reset-start",
			Does:   "The connection is reset at the start of the upload.",
			Fact:   "A broken connection is to be retried.",
			Source: retries,
			Faults: on(faults.OpStart, faults.Action{Effect: faults.EffectReset}),
		}, {
			Name:   "cut-early",
			Does:   "The connection breaks after 1,000 bytes of the first data request.",
			Fact:   fact,
			Source: guide,
			Faults: at(first, cut(1000)),
		}, {
			Name:   "cut-in-chunk",
			Does:   "The connection breaks after 300,000 bytes of a data request.",
			Fact:   fact,
			Source: guide,
			Faults: at(middle, cut(300_000)),
		}, {
			Name:   "cut-last",
			Does:   "The connection breaks after 1,000 bytes of the last data request.",
			Fact:   fact,
			Source: guide,
			Faults: at(last, cut(1000)),
		}, {
			Name:   "cut-before-end",
			Does:   "The connection breaks before the last byte of the object. All other bytes were read.",
			Fact:   fact,
			Source: guide,
			CutEnd: true,
		}, {
			Name: "closed",
			Does: "The connection is closed in order instead of a reply to a data request, of which nothing is " +
				"kept.",
			Fact:   fact,
			Source: guide,
			Faults: at(middle, faults.Action{Effect: faults.EffectClose}),
		}, {
			Name:   "reply-lost",
			Does:   "The reply to a data request is lost. Its bytes are kept.",
			Fact:   fact,
			Source: guide,
			Faults: at(middle, faults.Action{Effect: faults.EffectLoseReply}),
		}, {
			Name:   "final-reply-lost",
			Does:   "The reply to the last data request is lost. The object exists.",
			Fact:   "A finished session returns its object for every request.",
			Source: github + "googleapis/java-storage JsonResumableSessionFailureScenario",
			Faults: at(last, faults.Action{Effect: faults.EffectLoseReply}),
		}, {
			Name:   "late-commit",
			Does:   "The connection breaks in a data request. For a second, queries return the older offset.",
			Fact:   "A query soon after a broken connection can return less than is kept later.",
			Source: github + "googleapis/google-cloud-cpp/issues/9750",
			Faults: at(middle, faults.Action{Effect: faults.EffectLateCommit, Bytes: 300_000, For: time.Second}),
		}, {
			Name:   "stall",
			Does:   "The service reads 1,000 bytes of a data request, and then nothing more. The connection stays.",
			Fact:   "A timeout of a socket is to be retried.",
			Source: retries,
			Faults: at(middle, faults.Action{Effect: faults.EffectStallBody, Bytes: 1000}),
		},
	}
}

// strangerScripts returns the scripts about replies that are not the service's.
func strangerScripts() []Script {
	const fact = "Every reply of the service has X-GUploader-UploadID; one of a proxy or a login page has not."
	const recorded = "899 of 899 recorded replies of the service: storage.replay of cloud.google.com/go/storage, " +
		"T.replay of gocloud.dev"
	return []Script{
		{
			Name:    "html-200",
			Does:    "The last data request gets a stranger's page with 200. The object does not exist.",
			Fact:    fact,
			Source:  recorded,
			Faults:  at(last, page(200)),
			MayFail: true,
		}, {
			Name:    "html-200-start",
			Does:    "The start of the upload gets a stranger's page with 200.",
			Fact:    fact,
			Source:  recorded,
			Faults:  on(faults.OpStart, page(200)),
			MayFail: true,
		}, {
			Name:    "html-404",
			Does:    "A data request gets a stranger's page with 404.",
			Fact:    fact,
			Source:  recorded,
			Faults:  at(middle, page(404)),
			MayFail: true,
		}, {
			Name:   "html-502",
			Does:   "A data request gets a stranger's page with 502.",
			Fact:   "502 is to be retried. Its body is not always JSON.",
			Source: codes,
			Faults: at(middle, page(502)),
		},
	}
}

// objectScripts returns the scripts about the object: one that exists, and damaged bytes.
func objectScripts() []Script {
	return []Script{
		{
			Name:   "exists",
			Does:   "The object exists. The client may replace it or not, as it was told.",
			Fact:   "An upload replaces an object, if no precondition refuses it.",
			Source: condition,
			Exists: true,
		}, {
			Name:    "appears",
			Does:    "Another client makes the object during the upload.",
			Fact:    "A precondition of an upload is checked when all bytes are there: 412 to the last request.",
			Source:  condition,
			Appears: true,
		}, {
			Name: "damaged",
			Does: "One bit of a data request is changed on the way.",
			Fact: "The service refuses an object that does not have the checksum of the request: 400. It returns " +
				"the checksum of each object.",
			Source:  checksums,
			Damages: true,
			Faults:  at(first, faults.Action{Effect: faults.EffectCorrupt, Bytes: 2000}),
			MayFail: true,
		},
	}
}

// restartScripts returns the scripts with two runs.
func restartScripts() []Script {
	return []Script{
		{
			Name:   "killed",
			Does:   "The client is killed in the middle of the upload, and run again.",
			Fact:   "A session can be continued for a week. A status query returns how much is committed.",
			Source: overview,
			Kill:   true,
		}, {
			Name: "source-changed",
			Does: "The client is killed in the middle of the upload. The source then gets other bytes, and the " +
				"client is run again.",
			Fact:    "The service does not compare bytes that are sent again, and joins what it gets.",
			Source:  overview,
			Damages: true,
			Kill:    true,
			Change:  true,
			MayFail: true,
		},
	}
}

// partScripts returns the scripts about uploads in parts. Clients that make none do not meet them.
func partScripts() []Script {
	const parts = "https://cloud.google.com/storage/docs/multipart-uploads"
	return []Script{
		{
			Name:   "part-503",
			Does:   "A part of a multipart upload gets 503.",
			Fact:   "A part can be sent again.",
			Source: parts,
			Faults: on(faults.OpPartsPut, status(503)),
		}, {
			Name:   "part-reply-lost",
			Does:   "The reply to a part of a multipart upload is lost.",
			Fact:   "A part can be sent again.",
			Source: parts,
			Faults: on(faults.OpPartsPut, faults.Action{Effect: faults.EffectLoseReply}),
		}, {
			Name:     "complete-reply-lost",
			Does:     "The reply to the completion of a multipart upload is lost. The object exists.",
			Fact:     "A second completion succeeds.",
			Source:   github + "getsentry/objectstore/pull/575",
			Disputed: "the tests of java-storage expect 404 NoSuchUpload",
			Faults:   on(faults.OpPartsComplete, faults.Action{Effect: faults.EffectLoseReply}),
		}, {
			Name:   "complete-503",
			Does:   "The completion of a multipart upload gets 503. There is no object.",
			Fact:   "503 is to be retried.",
			Source: retries,
			Faults: on(faults.OpPartsComplete, status(503)),
		}, {
			Name:   "compose-503",
			Does:   "The request that composes the object gets 503.",
			Fact:   "503 is to be retried.",
			Source: retries,
			Faults: on(faults.OpCompose, status(503)),
		}, {
			Name:   "compose-reply-lost",
			Does:   "The reply to the request that composes the object is lost. The object exists.",
			Fact:   "A compose with a precondition can be repeated; 412 then needs a look at the object.",
			Source: retries,
			Faults: on(faults.OpCompose, faults.Action{Effect: faults.EffectLoseReply}),
		},
	}
}
