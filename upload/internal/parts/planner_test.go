package parts

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
)

// aboutBucket are the requests about a bucket.
const aboutBucket = "bucket-get bucket-permissions notification-list"

// writer is what roles/storage.legacyBucketWriter grants of what is asked for: its holder finds out that there is no
// object, but cannot read or compose one.
const writer = `{"permissions":["storage.objects.create","storage.objects.delete","storage.multipartUploads.listParts"]}`

// unlisting is what a custom role grants that has all permissions except the one to list parts.
const unlisting = `{"permissions":["storage.objects.create","storage.objects.delete","storage.objects.get"]}`

// refusals replace the replies to each request of a kind.
type refusals []struct {
	op faults.Op
	do faults.Action
}

// json is a reply of the service with another body.
func json(body string) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: 200, ContentType: "application/json", Body: body}
}

// page is a reply of a proxy.
func page(code int) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: code, ContentType: "text/html", Body: "<html>no</html>"}
}

// TestPlan checks how a file is sent, depending on its size, the options, the settings of the bucket and the replies of the
// service, and which requests that takes: for the first file, and for the next one in the same bucket.
func TestPlan(t *testing.T) {
	t.Parallel()
	two, auto := Options{Connections: 2, Min: 4 * mib}, Options{Connections: 64, Min: AutoMin, Auto: true, MinFile: AutoMinFile}
	fixed := func(n int) Options { return Options{Connections: n, Min: 4 * mib} }
	none := `{"kind":"storage#testIamPermissionsResponse"}`
	key, err := session.NewEncryptionKey(make([]byte, 32))
	require.NoError(t, err)
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		way     Way // the only one that is allowed, or OneConnection for any
		options Options
		size    int64 // 0 means 1 GiB
		object  string
		spec    session.Spec
		bucket  fakegcs.Bucket
		setup   func(*world)
		refused refusals

		want     Way
		why      string // of one connection, or the warning about a compose
		err      error
		prefix   string // of temporary objects
		part     int64  // size, in MiB; 0 is any
		deletes  bool   // the compose deletes its sources
		requests string // "stat" is one that finds no object, and "facts" are the three about the bucket
		next     string // requests for the next file; "" is the first one of them
	}{
		// Without a request.
		{name: "small", options: two, size: 4 * mib},
		{name: "nothing suits", options: two, spec: session.Spec{MD5: make([]byte, 16)}, why: "an object of a multipart upload has no MD5; a composed object has no MD5"},
		{name: "no multipart", way: Multipart, options: two, spec: session.Spec{IfGenerationMatch: new(int64)}, why: "a multipart upload has no preconditions"},
		{name: "not-match", way: Compose, options: two, spec: session.Spec{IfGenerationNotMatch: new(int64)}, why: "a compose has no not-match conditions"},
		{name: "metageneration not-match", way: Compose, options: two, spec: session.Spec{IfMetagenerationNotMatch: new(int64)}, why: "a compose has no not-match conditions"},
		{name: "key", way: Compose, options: two, spec: session.Spec{EncryptionKey: key}, why: "it has a customer-supplied encryption key"},
		{name: "rate not known", options: auto, setup: func(w *world) { w.link = &connections.Link{Memory: 64 * mib, Limited: w.link.Limited} }, want: Measured},
		{name: "one connection is fast", options: auto, setup: func(w *world) { w.link.Measure()(1<<30, time.Second) }, why: "one connection is fast enough: it sends 1024 MiB/s"},

		// The destination.
		{name: "unreadable", options: two, refused: refusals{{faults.OpGet, status(403)}}, why: "the object at the destination cannot be read", requests: "get!403", next: "same"},
		{name: "wrong credentials", options: two, refused: refusals{{faults.OpGet, status(401)}}, err: session.ErrCredentials, requests: "get!401 get!401", next: "same"},
		{name: "an outage", options: two, refused: refusals{{faults.OpGet, status(503)}}, err: session.ErrRetriesExhausted, requests: "get!503 get!503 get!503", next: "same"},
		{name: "precondition", options: two, spec: session.Spec{IfGenerationMatch: new(int64)}, want: Compose, requests: "facts", next: "none"},

		// A multipart upload.
		{name: "multipart first", options: two, want: Multipart, part: 8, requests: "stat parts-start", next: "same"},
		{name: "no part of 5 MiB", way: Multipart, options: two, size: 5 * mib, why: "a part of a multipart upload has at least 5 MiB", requests: "stat", next: "same"},
		{name: "refused", options: two, refused: refusals{{faults.OpPartsStart, status(403)}}, want: Compose, requests: "stat parts-start!403 facts", next: "stat parts-start!403"},
		{name: "only multipart, refused", way: Multipart, options: two, refused: refusals{{faults.OpPartsStart, status(403)}}, err: session.ErrPermission, requests: "stat parts-start!403", next: "same"},
		{name: "only multipart, a proxy", way: Multipart, options: two, refused: refusals{{faults.OpPartsStart, page(405)}}, why: "multipart uploads are refused", requests: "stat parts-start!405 parts-start!405", next: "same"},
		{name: "start with wrong credentials", options: two, refused: refusals{{faults.OpPartsStart, status(401)}}, err: session.ErrCredentials, requests: "stat parts-start!401 parts-start!401", next: "same"},
		{name: "start in an outage", options: two, refused: refusals{{faults.OpPartsStart, status(503)}}, err: session.ErrRetriesExhausted, requests: "stat parts-start!503 parts-start!503 parts-start!503", next: "same"},
		{name: "no bucket", options: two, spec: session.Spec{Bucket: "missing"}, err: session.ErrNotFound, requests: "stat parts-start!404", next: "same"},

		// A compose comes first if parts would be at risk together or slow, and if it costs nothing.
		{name: "12 connections", options: fixed(12), want: Multipart, requests: "stat parts-start", next: "same"},
		{name: "13 connections", options: fixed(13), want: Compose, requests: "stat facts"},
		{name: "13 connections, compose costs", options: fixed(13), bucket: fakegcs.Bucket{StorageClass: "NEARLINE"}, want: Multipart, requests: "stat facts parts-start", next: "stat parts-start"},
		{name: "13 connections, no compose", way: Multipart, options: fixed(13), want: Multipart, requests: "stat parts-start", next: "same"},
		{name: "auto, near", options: auto, want: Multipart, part: 5, requests: "stat parts-start", next: "same"},
		{name: "auto, far", options: auto, setup: func(w *world) { w.link.Replied(100 * time.Millisecond) }, want: Compose, part: 32, requests: "stat facts"},
		{name: "auto, 640 GiB", options: auto, size: 640 << 30, want: Compose, requests: "stat facts"},

		// What the bucket allows, and what it costs.
		{name: "retention", way: Compose, options: two, bucket: fakegcs.Bucket{Retention: time.Minute}, why: "the bucket has a retention policy, and temporary objects could not be deleted", requests: "stat facts"},
		{name: "hold", way: Compose, options: two, bucket: fakegcs.Bucket{EventBasedHold: true}, why: "the bucket holds new objects, and temporary objects could not be deleted", requests: "stat facts"},
		{name: "soft delete", way: Compose, options: two, bucket: fakegcs.Bucket{SoftDelete: 7 * day}, want: Compose, deletes: true, part: 128, requests: "stat facts"},
		{name: "soft delete, one compose", way: Compose, options: Options{Connections: 256, Min: mib}, bucket: fakegcs.Bucket{SoftDelete: 7 * day}, want: Compose, deletes: true, part: 32, requests: "stat facts"},
		{name: "class of the bucket", way: Compose, options: two, bucket: fakegcs.Bucket{StorageClass: "COLDLINE"}, want: Compose, deletes: true, why: "temporary objects of the storage class COLDLINE are billed for 90 days if the upload does not finish", requests: "stat facts"},
		{name: "class of the object", way: Compose, options: two, spec: session.Spec{StorageClass: "ARCHIVE"}, want: Compose, deletes: true, why: "temporary objects of the storage class ARCHIVE are billed for 365 days if the upload does not finish", requests: "stat facts"},
		{name: "notifications", way: Compose, options: two, setup: notify(`{"topic":"t","payload_format":"NONE"}`), want: Compose, why: "the bucket sends Pub/Sub notifications, and each temporary object causes some", requests: "stat facts"},
		{name: "notifications of others", way: Compose, options: two, setup: notify(`{"topic":"t","payload_format":"NONE","object_name_prefix":"logs/"}`), want: Compose, requests: "stat facts"},
		{name: "auto, class", way: Compose, options: auto, bucket: fakegcs.Bucket{StorageClass: "NEARLINE"}, why: "temporary objects of the storage class NEARLINE are billed for 30 days if the upload does not finish", requests: "stat facts"},
		{name: "auto, versioning", way: Compose, options: auto, bucket: fakegcs.Bucket{Versioning: true}, want: Compose, requests: "stat facts"},
		{name: "no deletes", way: Compose, options: two, refused: refusals{{faults.OpBucketPermissions, json(`{"permissions":["storage.objects.create"]}`)}}, why: "the permission storage.objects.delete is missing, and temporary objects could not be deleted", requests: "stat facts"},
		{name: "no creates", way: Compose, options: two, refused: refusals{{faults.OpBucketPermissions, json(`{"permissions":["storage.objects.delete"]}`)}}, why: "the permission storage.objects.create is missing, and temporary objects could not be made", requests: "stat facts"},

		// What is not known about the bucket prevents a compose only if it must cost nothing.
		{name: "no reads", way: Compose, options: two, refused: refusals{{faults.OpBucketPermissions, json(writer)}}, why: "the permission storage.objects.get is missing, and temporary objects could not be composed", requests: "stat facts"},
		{name: "settings unreadable", way: Compose, options: two, refused: refusals{{faults.OpBucketGet, status(403)}}, want: Compose, requests: "stat bucket-get!403 bucket-permissions bucket-layout"},
		{name: "auto, settings unreadable", way: Compose, options: auto, refused: refusals{{faults.OpBucketGet, status(403)}}, why: "the settings of the bucket cannot be read (storage.buckets.get)", requests: "stat bucket-get!403"},
		{name: "auto, no permissions", way: Compose, options: auto, refused: refusals{{faults.OpBucketPermissions, status(400)}}, why: "the permissions for the bucket cannot be read", requests: "stat bucket-get bucket-permissions!400"},
		{name: "no permissions", way: Compose, options: two, refused: refusals{{faults.OpBucketPermissions, status(400)}}, want: Compose, requests: "stat bucket-get bucket-permissions!400 notification-list"},
		{name: "auto, no notifications", way: Compose, options: auto, refused: refusals{{faults.OpNotificationList, status(404)}}, why: "the notifications of the bucket cannot be read", requests: "stat bucket-get bucket-permissions notification-list!404"},
		{name: "auto, no bucket", way: Compose, options: auto, spec: session.Spec{Bucket: "missing"}, why: "the bucket is not found", requests: "stat bucket-stat", next: "same"},
		{name: "no bucket, compose", way: Compose, options: two, spec: session.Spec{Bucket: "missing"}, want: Compose, requests: "stat bucket-stat", next: "same"},
		{name: "settings in an outage", way: Compose, options: two, refused: refusals{{faults.OpBucketGet, status(503)}}, err: session.ErrRetriesExhausted, requests: "stat bucket-get!503 bucket-get!503 bucket-get!503", next: "same"},
		{name: "a proxy", way: Compose, options: two, refused: refusals{{faults.OpNotificationList, page(405)}}, want: Compose, requests: "stat bucket-get bucket-permissions notification-list!405 notification-list!405", next: "same"},
		{name: "an outage of the bucket", way: Compose, options: two, refused: refusals{{faults.OpBucketPermissions, status(503)}}, err: session.ErrRetriesExhausted, requests: "stat bucket-get bucket-permissions!503 bucket-permissions!503 bucket-permissions!503", next: "same"},

		// Where temporary objects are. A managed folder may grant what the bucket does not: the outermost one counts.
		{name: "hierarchical", way: Compose, options: two, bucket: fakegcs.Bucket{Hierarchical: true}, want: Compose, prefix: "gcsup-parts-ID-RANDOM-", requests: "stat facts"},
		{name: "hierarchical, settings unreadable", way: Compose, options: two, bucket: fakegcs.Bucket{Hierarchical: true}, refused: refusals{{faults.OpBucketGet, status(403)}}, want: Compose, prefix: "gcsup-parts-ID-RANDOM-", requests: "stat bucket-get!403 bucket-permissions bucket-layout"},
		{name: "layout unreadable", way: Compose, options: two, refused: refusals{{faults.OpBucketGet, status(403)}, {faults.OpBucketLayout, status(403)}}, want: Compose, requests: "stat bucket-get!403 bucket-permissions bucket-layout!403"},
		{name: "layout behind a proxy", way: Compose, options: two, refused: refusals{{faults.OpBucketGet, status(403)}, {faults.OpBucketLayout, page(403)}}, want: Compose, requests: "stat bucket-get!403 bucket-permissions bucket-layout!403 bucket-layout!403", next: "stat bucket-layout!403 bucket-layout!403"},
		{name: "layout in an outage", way: Compose, options: two, refused: refusals{{faults.OpBucketGet, status(403)}, {faults.OpBucketLayout, status(503)}}, err: session.ErrRetriesExhausted, requests: "stat bucket-get!403 bucket-permissions bucket-layout!503 bucket-layout!503 bucket-layout!503", next: "stat bucket-layout!503 bucket-layout!503 bucket-layout!503"},
		{name: "no folder", way: Compose, options: two, object: "a/b/obj", setup: folders(), refused: refusals{{faults.OpBucketPermissions, json(none)}}, why: "the permission storage.objects.delete is missing", requests: "stat facts managed-folder-permissions!404 managed-folder-permissions!404"},
		{name: "the outer folder", way: Compose, options: two, object: "a/b/obj", setup: folders("a/", "a/b/"), refused: refusals{{faults.OpBucketPermissions, json(none)}}, want: Compose, prefix: "a/gcsup-parts-ID-RANDOM-", requests: "stat facts managed-folder-permissions"},
		{name: "the inner folder", way: Compose, options: two, object: "a/b/obj", setup: folders("a/b/"), refused: refusals{{faults.OpBucketPermissions, json(none)}}, want: Compose, prefix: "a/b/gcsup-parts-ID-RANDOM-", requests: "stat facts managed-folder-permissions!404 managed-folder-permissions"},
		{name: "a folder without deletes", way: Compose, options: two, object: "a/obj", setup: folders("a/"), refused: refusals{{faults.OpBucketPermissions, json(none)}, {faults.OpManagedFolderPermissions, json(`{"permissions":["storage.objects.create"]}`)}}, why: "the permission storage.objects.delete is missing", requests: "stat facts managed-folder-permissions"},
		{name: "a folder behind a proxy", way: Compose, options: two, object: "a/obj", setup: folders("a/"), refused: refusals{{faults.OpBucketPermissions, json(none)}, {faults.OpManagedFolderPermissions, page(405)}}, why: "the permission storage.objects.delete is missing", requests: "stat facts managed-folder-permissions!405 managed-folder-permissions!405", next: "stat managed-folder-permissions!405 managed-folder-permissions!405"},
		{name: "a folder in an outage", way: Compose, options: two, object: "a/obj", setup: folders("a/"), refused: refusals{{faults.OpBucketPermissions, json(none)}, {faults.OpManagedFolderPermissions, status(503)}}, err: session.ErrRetriesExhausted, requests: "stat facts managed-folder-permissions!503 managed-folder-permissions!503 managed-folder-permissions!503", next: "stat managed-folder-permissions!503 managed-folder-permissions!503 managed-folder-permissions!503"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				test.bucket.Name = "own"
				w.bucket(test.bucket)
				w.spec, w.options = test.spec, test.options
				w.spec.Bucket, w.spec.Object = cmp.Or(test.spec.Bucket, "own"), cmp.Or(test.object, "obj")
				if w.link.Measure()(0, time.Hour); test.setup != nil { // one connection is slow
					test.setup(w)
				}
				for _, r := range test.refused {
					w.fault(r.op, 1, -1, r.do)
				}
				next := strings.NewReplacer("same", test.requests, "none", "").Replace(cmp.Or(test.next, test.requests[:min(len(test.requests), len("stat"))]))
				for _, requests := range []string{test.requests, next} {
					requests = strings.NewReplacer("stat", "get!404", "facts", aboutBucket).Replace(requests)
					plan, err := w.plan(test.way, cmp.Or(test.size, 1<<30))
					if !errors.Is(err, test.err) || plan.Way != test.want || (plan.Parts != nil) != (plan.Way == Multipart || plan.Way == Compose) {
						w.Fatalf("%+v, %v; want way %d, %v", plan, err, test.want, test.err)
					}
					if got := w.requests(); got != requests {
						w.Errorf("the requests are\n%s, want\n%s", got, requests)
					}
					if why := plan.Why.String(); test.want == OneConnection && (!strings.HasPrefix(why, test.why) || (why == "") != (test.why == "")) {
						w.Errorf("the reason is %q, want %q", why, test.why)
					}
					if p := plan.Parts; p != nil {
						if test.part > 0 && p.Size != test.part*mib || p.DeleteSources != test.deletes || p.Seen != 0 || p.Upload.IsZero() != (plan.Way == Compose) {
							w.Errorf("%+v", p)
						}
						prefix := names.ReplaceAllString(p.Prefix, "RANDOM")
						if want := map[Way]string{Compose: cmp.Or(test.prefix, "gcsup-parts/"+id+"-RANDOM/")}[plan.Way]; strings.ReplaceAll(want, "ID", id) != prefix {
							w.Errorf("the prefix is %q, want %q", prefix, want)
						}
					}
				}
				warnings := w.noted(engine.Warning)
				if warned := test.want == Compose && test.why != ""; warned != (len(warnings) == 1) || warned && warnings[0] != test.why {
					w.Errorf("warnings %q, want %q", warnings, test.why)
				}
			})
		})
	}
}

// TestPlanStream checks how a stream is sent, and which requests that takes.
func TestPlanStream(t *testing.T) {
	t.Parallel()
	two, auto := Options{Connections: 2, Min: DefaultMin}, Options{Connections: 64, Min: AutoMin, Auto: true}
	const composed = "get!404 " + aboutBucket + " parts-start"
	for _, test := range []struct {
		name     string
		only     bool // one multipart upload
		options  Options
		size     int64 // 0 is unknown
		most     int64 // of a compressed file
		spec     session.Spec
		bucket   fakegcs.Bucket
		refused  refusals
		want     Way
		why      string // of one connection, or of the limit
		requests string
	}{
		{name: "a number", options: two, want: Compose, requests: composed},
		{name: "auto", options: auto, want: Compose, requests: composed},
		{name: "a precondition", options: auto, spec: session.Spec{IfGenerationMatch: new(int64)}, want: Compose, requests: aboutBucket + " parts-start"},
		{name: "a size that fits", options: auto, size: 1 << 30, want: Multipart, requests: "get!404 bucket-permissions parts-start"},
		{name: "a size that does not", options: two, size: 5 << 40, want: Compose, requests: composed},
		{name: "retention, a number", options: two, bucket: fakegcs.Bucket{Retention: time.Minute}, want: Multipart, why: "the bucket has a retention policy", requests: composed},
		{name: "retention, auto", options: auto, bucket: fakegcs.Bucket{Retention: time.Minute}, why: "the bucket has a retention policy", requests: "get!404 " + aboutBucket},
		{name: "retention, a size that does not fit", options: two, size: 5 << 40, bucket: fakegcs.Bucket{Retention: time.Minute}, why: "it has 5497558138880 bytes", requests: "get!404 " + aboutBucket},
		{name: "a class that costs", options: two, bucket: fakegcs.Bucket{StorageClass: "COLDLINE"}, want: Multipart, why: "temporary objects of the storage class COLDLINE", requests: composed},
		{name: "no list, auto", options: auto, refused: refusals{{faults.OpBucketPermissions, json(unlisting)}}, why: "the permission storage.multipartUploads.listParts is missing", requests: "get!404 " + aboutBucket},
		{name: "no list, a number", options: two, refused: refusals{{faults.OpBucketPermissions, json(unlisting)}}, why: "the permission storage.multipartUploads.listParts is missing", requests: "get!404 " + aboutBucket},
		{name: "no list, only one upload", only: true, options: two, refused: refusals{{faults.OpBucketPermissions, json(unlisting)}}, why: "several multipart uploads would have to be composed; the permission storage.multipartUploads.listParts is missing", requests: "get!404 bucket-permissions"},
		{name: "no list, settings unreadable", options: two, refused: refusals{{faults.OpBucketGet, status(403)}, {faults.OpBucketPermissions, json(unlisting)}}, why: "the settings of the bucket cannot be read (storage.buckets.get); the permission storage.multipartUploads.listParts is missing", requests: "get!404 bucket-get!403 bucket-permissions"},
		{name: "only one upload, a number", only: true, options: two, want: Multipart, why: "several multipart uploads", requests: "get!404 bucket-permissions parts-start"},
		{name: "only one upload, no permissions", only: true, options: two, refused: refusals{{faults.OpBucketPermissions, status(400)}}, want: Multipart, why: "several multipart uploads", requests: "get!404 bucket-permissions!400 parts-start"},
		{name: "only one upload, on a folder", only: true, options: two, refused: refusals{{faults.OpBucketPermissions, json(`{}`)}}, want: Multipart, why: "several multipart uploads", requests: "get!404 bucket-permissions parts-start"},
		{name: "only one upload, auto", only: true, options: auto, why: "several multipart uploads"},
		{name: "a compressed file", options: two, most: 1 << 30, want: Multipart, requests: "get!404 bucket-permissions parts-start"},
		{name: "a compressed file, refused", options: auto, most: 1 << 30, refused: refusals{{faults.OpPartsStart, status(403)}}, why: "multipart uploads are refused", requests: "get!404 bucket-permissions parts-start!403"},
		{name: "a compressed file, too large", options: two, most: 5 << 40, why: "it may have 5497558138880 bytes, and its parts would hold"},
		{name: "a compressed file, a hold", options: two, most: 1 << 30, spec: session.Spec{TemporaryHold: true}, why: "a multipart upload sets no hold"},
		{name: "an MD5", options: two, spec: session.Spec{MD5: make([]byte, 16)}, why: "an object of a multipart upload has no MD5; a composed object has no MD5"},
		{name: "a hold", options: two, spec: session.Spec{TemporaryHold: true}, want: Compose, requests: composed},
		{name: "refused", options: auto, refused: refusals{{faults.OpPartsStart, status(403)}}, why: "multipart uploads are refused", requests: composed + "!403"},
		{name: "no reads, auto", options: auto, refused: refusals{{faults.OpBucketPermissions, json(writer)}}, why: "the permission storage.objects.get is missing", requests: "get!404 " + aboutBucket},
		{name: "no reads, a number", options: two, refused: refusals{{faults.OpBucketPermissions, json(writer)}}, want: Multipart, why: "the permission storage.objects.get is missing", requests: composed},
		{name: "settings unreadable, auto", options: auto, refused: refusals{{faults.OpBucketGet, status(403)}}, why: "the settings of the bucket cannot be read", requests: "get!404 bucket-get!403"},
		{name: "settings unreadable, a number", options: two, refused: refusals{{faults.OpBucketGet, status(403)}}, want: Multipart, why: "the settings of the bucket cannot be read", requests: "get!404 bucket-get!403 bucket-permissions parts-start"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				test.bucket.Name = "own"
				w.bucket(test.bucket)
				w.spec, w.options = test.spec, test.options
				w.spec.Bucket, w.spec.Object = "own", "obj"
				for _, r := range test.refused {
					w.fault(r.op, 1, -1, r.do)
				}
				d := w.division()
				defer d.Journal.Close()
				if test.size > 0 {
					d.Expect.Size = &test.size
				}
				p := Planner{Division: d, Multipart: true, Compose: !test.only, Buckets: w.buckets, Size: -1, ID: id, Most: test.most}
				plan, err := p.PlanStream(w.Context())
				if err != nil || plan.Way != test.want || !strings.HasPrefix(plan.Why.String(), test.why) || (test.why == "") != (len(plan.Why) == 0) {
					t.Errorf("%+v, %v", plan, err)
				}
				if got := w.requests(); got != test.requests {
					t.Errorf("the requests are %s, want %s", got, test.requests)
				}
				if refused := p.StreamRefused(); (len(refused) > 0) != (test.requests == "") {
					t.Errorf("without a request: %v", refused)
				}
				if q := plan.Parts; q != nil && (q.Upload.IsZero() || (q.Prefix != "") != (test.want == Compose) || q.Size < AutoMin) {
					t.Errorf("%+v", q)
				}
				if len(w.noted(engine.Warning)) > 0 {
					t.Error(w.noted(engine.Warning))
				}
			})
		})
	}
}

var names = regexp.MustCompile("[A-Z2-7]{26}")

// plan returns the plan for a file. only is the only one to join its parts, or OneConnection for any.
func (w *world) plan(only Way, size int64) (Plan, error) {
	d := w.division()
	defer d.Journal.Close()
	p := Planner{Division: d, Multipart: only != Compose, Compose: only != Multipart, Buckets: w.buckets, Size: size, ID: id}
	return p.Plan(w.Context())
}

// notify makes the bucket publish messages.
func notify(config string) func(*world) {
	return func(w *world) { w.ask("POST", "/storage/v1/b/own/notificationConfigs", config) }
}

// folders makes managed folders.
func folders(names ...string) func(*world) {
	return func(w *world) {
		w.ask("PATCH", "/storage/v1/b/own", `{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`)
		for _, name := range names {
			w.ask("POST", "/storage/v1/b/own/managedFolders", `{"name":"`+name+`"}`)
		}
	}
}

// TestPlanFollowsChanges checks what the plan of a later file finds out again: the object at the destination, and a bucket
// that did not exist or did not answer. After a plan that only a free compose would suit, a fixed number of connections
// asks what it needs.
func TestPlanFollowsChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		want := func(way Way, seen bool, requests string) {
			w.Helper()
			plan, err := w.plan(Compose, 1<<30)
			if err != nil || plan.Way != way || plan.Parts != nil && (plan.Parts.Seen > 0) != seen {
				w.Errorf("%+v, %v", plan, err)
			}
			if got := w.requests(); got != requests {
				w.Errorf("the requests are %s, want %s", got, requests)
			}
		}
		w.link.Measure()(0, time.Hour) // one connection is slow
		two := Options{Connections: 2, Min: 4 * mib}
		auto := Options{Connections: 64, Min: AutoMin, Auto: true, MinFile: AutoMinFile}
		w.spec.Bucket, w.options = "later", auto
		want(OneConnection, false, "get!404 bucket-get!404")
		w.bucket(fakegcs.Bucket{Name: "later"})
		want(Compose, false, "get!404 "+aboutBucket)
		if _, err := w.srv.PutObject(fakegcs.Object{Bucket: "later", Name: "obj"}, strings.NewReader("x")); err != nil {
			w.Fatal(err)
		}
		want(Compose, true, "get")

		w.spec.Bucket = "bkt"
		w.fault(faults.OpBucketGet, 1, -1, status(403))
		want(OneConnection, false, "get!404 bucket-get!403")
		w.options = two
		want(Compose, false, "get!404 bucket-get!403 bucket-permissions bucket-layout")
		w.options = auto
		want(OneConnection, false, "get!404")
	})
}

// TestPlansShareWhatTheyFindOut checks that files that are planned together ask about their bucket once, with retries, and that a
// plan whose turn does not come ends with its context.
func TestPlansShareWhatTheyFindOut(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Latency: time.Second}, func(w *world) {
		w.options = Options{Connections: 2, Min: 4 * mib}
		for _, op := range strings.Fields(aboutBucket) {
			w.fault(faults.Op(op), 1, 1, status(503))
		}
		w.tries = 9
		planner := Planner{Division: w.division(), Compose: true, Buckets: w.buckets, Size: 1 << 30}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(w.Context(), 2500*time.Millisecond)
				defer cancel()
				if i < 2 {
					ctx = w.Context()
				}
				own := planner
				own.Wire = engine.NewRequester(own.Uplink, 0, engine.NewPosition(0)).To(w.spec)
				if plan, err := own.Plan(ctx); (err == nil) != (i < 2) || i < 2 && plan.Way != Compose || i == 2 && !errors.Is(err, context.DeadlineExceeded) {
					w.Errorf("plan %d: %+v, %v", i, plan, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if got, want := w.requests(), "get!404 get!404 get!404 bucket-get!503 bucket-get bucket-permissions!503 bucket-permissions notification-list!503 notification-list"; got != want {
			w.Errorf("the requests are %s, want %s", got, want)
		}
	})
}
