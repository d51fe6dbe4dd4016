package upload_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// Replies that were recorded.
var (
	backendError = jsonError(503, "backendError", "Backend Error", "")                                                                                                // rclone/rclone#550
	objectLimit  = jsonError(429, "rateLimitExceeded", "The object bkt/obj exceeded the rate limit for object mutation operations (create, update, and delete).", "") // trinodb/trino#19943
	slowDown     = xmlError(429, "SlowDown", "Please reduce your request rate.", "Changing object bkt/obj too quickly, please slow down")                             // NC
	frontEnd408  = &canned{status: 408, front: true, header: map[string]string{"Content-Type": "text/html; charset=UTF-8", "Referrer-Policy": "no-referrer"},         // GR
		body: "<!DOCTYPE html><html lang=en><title>Error 408 (Request Timeout)!!1</title>" + strings.Repeat(" ", 1481) + "</html>"}
	invalidToken = jsonError(401, "authError", "Invalid Credentials", `,"locationType":"header","location":"Authorization"`)                                                                                           // FE
	noToken      = jsonError(401, "required", "Anonymous caller does not have storage.objects.create access to the Google Cloud Storage object.", `,"locationType":"header","location":"Authorization"`)               // SR#70
	noRight      = jsonError(403, "forbidden", "a@b.iam.gserviceaccount.com does not have storage.objects.create access to the Google Cloud Storage object. Permission denied on resource (or it may not exist).", "") // GC
	noRightXML   = xmlError(403, "AccessDenied", "Access denied.", "a@b.iam.gserviceaccount.com does not have storage.objects.create access to the Google Cloud Storage object.")                                      // GC
	noBucket     = jsonError(404, "notFound", "The specified bucket does not exist.", "")
	goneOfLimit  = func() *canned { // LE
		c := jsonError(429, "rateLimitExceeded", "The total number of changes to the object bkt/obj exceeds the rate limit. Please reduce the rate of create, update, and delete requests.", "")
		c.status = 410
		return c
	}()
	lost = &canned{cut: true, after: true}
)

// someTimes returns a fault for the first n requests of a kind, after skip of them.
func someTimes(k string, skip, n int, c *canned) func(string, int, *http.Request) *canned {
	return func(kind string, i int, _ *http.Request) *canned {
		if kind == k && i >= skip && i < skip+n {
			return c
		}
		return nil
	}
}

// allOfThem is more requests than an upload makes.
const allOfThem = 1 << 30

// TestRecordedConversations uploads to a service that answers as the real one was recorded to answer. Each
// upload ends with the right object, or with the documented error and no object.
func TestRecordedConversations(t *testing.T) {
	t.Parallel()
	chunks := func(o *upload.Options) { o.ChunkSize = 2 * q }
	whole := func(*upload.Options) {}
	small, file := int64(100_000), 9*mib
	parts := int64(2*session.MultipartMinPart + 1)
	for _, test := range []struct {
		name    string
		size    int64
		with    func(*upload.Options)
		fault   func(kind string, n int, r *http.Request) *canned
		service func(s *recordedService)
		spec    func(*upload.Spec)
		want    error
	}{
		// A session.
		{name: "session", size: file, with: whole},
		{name: "chunks", size: 9 * q, with: chunks},
		{name: "503 to a chunk", size: 9 * q, with: chunks, fault: someTimes("put", 2, 1, backendError)},
		{name: "503 to a chunk, which was committed", size: 9 * q, with: chunks, fault: someTimes("put", 2, 1, &canned{after: true, status: 503, header: backendError.header, body: backendError.body})},
		{name: "cut chunk", size: file, with: whole, fault: someTimes("put", 0, 1, &canned{read: int(3*mib + 70_000), cut: true})},
		{name: "cut chunk before a step", size: 9 * q, with: chunks, fault: someTimes("put", 0, 1, &canned{read: 1000, cut: true})},
		{name: "lost reply to a chunk", size: 9 * q, with: chunks, fault: someTimes("put", 1, 1, lost)},
		{name: "lost last reply", size: file, with: whole, fault: someTimes("final", 0, 1, lost)},
		{name: "lost last reply, and lost answers", size: file, with: whole, fault: func(kind string, n int, _ *http.Request) *canned {
			if kind == "final" && n == 0 || kind == "query" && n < 3 {
				return lost
			}
			return nil
		}},
		{name: "408 of a front end", size: 9 * q, with: chunks, fault: someTimes("put", 1, 1, frontEnd408)},
		{name: "429 of the object at the start", size: file, with: whole, fault: someTimes("start", 0, 2, objectLimit)},
		{name: "429 of the object at the end", size: file, with: whole, fault: someTimes("final", 0, 1, objectLimit)},
		{name: "410 around a rate limit", size: file, with: whole, fault: someTimes("final", 0, 2, goneOfLimit)},
		{name: "401, and a new token", size: 9 * q, with: chunks, fault: someTimes("put", 1, 1, invalidToken)},
		{name: "401 always", size: 9 * q, with: chunks, fault: someTimes("put", 1, allOfThem, invalidToken), want: session.ErrCredentials},
		{name: "no token", size: file, with: whole, fault: someTimes("start", 0, allOfThem, noToken), want: session.ErrCredentials},
		{name: "403 at the start", size: file, with: whole, fault: someTimes("start", 0, allOfThem, noRight), want: session.ErrPermission},
		{name: "no bucket", size: file, with: whole, fault: someTimes("start", 0, allOfThem, noBucket), want: session.ErrNotFound},
		{name: "session lost", size: 9 * q, with: chunks, service: func(s *recordedService) {
			s.fault = func(kind string, n int, r *http.Request) *canned {
				if kind == "put" && n == 3 {
					clear(s.sessions)
				}
				return nil
			}
		}},
		{name: "canceled by another", size: 9 * q, with: chunks, service: func(s *recordedService) {
			s.fault = func(kind string, n int, r *http.Request) *canned {
				if u := s.sessions[r.URL.Query().Get("upload_id")]; kind == "put" && n == 3 {
					u.state = 499
				}
				return nil
			}
		}, want: session.ErrCanceled},
		{name: "another writer, 412 at the end", size: file, with: whole, spec: create, service: func(s *recordedService) {
			s.fault = func(kind string, n int, r *http.Request) *canned {
				if kind == "final" && n == 0 {
					s.publish(&recordedObject{name: "obj", content: []byte("other")}, "")
				}
				return nil
			}
		}, want: session.ErrPrecondition},
		{name: "412 at the start", size: file, with: whole, spec: create, service: func(s *recordedService) {
			s.checksAtStart = true
			s.publish(&recordedObject{name: "obj", content: []byte("other")}, "")
		}, want: session.ErrPrecondition},
		{name: "damaged on the way", size: 9 * q, with: chunks, service: func(s *recordedService) {
			s.fault = func(kind string, n int, r *http.Request) *canned {
				if u := s.sessions[r.URL.Query().Get("upload_id")]; kind == "put" && n == 3 {
					u.content[5] ^= 1
				}
				return nil
			}
		}},
		{name: "damaged in the last request", size: file, with: whole, fault: someTimes("final", 0, 1, jsonError(400, "invalid", `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "BBBBBB==".`, ""))},

		// One request.
		{name: "insert", size: small, with: whole},
		{name: "insert, 503", size: small, with: whole, fault: someTimes("insert", 0, 2, backendError)},
		{name: "insert, 429 of the object", size: small, with: whole, fault: someTimes("insert", 0, 1, objectLimit)},
		{name: "insert, 408 of a front end", size: small, with: whole, fault: someTimes("insert", 0, 1, frontEnd408)},
		{name: "insert, lost reply", size: small, with: whole, fault: someTimes("insert", 0, 1, lost)},
		{name: "insert, 412", size: small, with: whole, spec: create, service: func(s *recordedService) {
			s.publish(&recordedObject{name: "obj", content: []byte("other")}, "")
		}, want: session.ErrPrecondition},
		{name: "insert, damaged", size: small, with: whole, fault: someTimes("insert", 0, allOfThem, jsonError(400, "invalid", `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "BBBBBB==".`, "")), want: session.ErrChecksum},
		{name: "insert, error of the metadata", size: small, with: whole, fault: func(kind string, _ int, _ *http.Request) *canned {
			c := jsonError(400, "required", "No object name", "")
			c.header["Content-Type"] = "text/html; charset=UTF-8" // GC
			if kind == "insert" {
				return c
			}
			return nil
		}, want: session.ErrInvalid},
		{name: "insert, 403", size: small, with: whole, fault: someTimes("insert", 0, allOfThem, noRight), want: session.ErrPermission},

		// A multipart upload.
		{name: "multipart", size: parts, with: byMultipart},
		{name: "multipart, the other namespace", size: parts, with: byMultipart, service: func(s *recordedService) { s.namespace = "http://doc.s3.amazonaws.com/2006-03-01" }},
		{name: "multipart, 503 to a part", size: parts, with: byMultipart, fault: someTimes("part", 1, 1, xmlError(503, "InternalError", "We encountered an internal error. Please try again.", ""))},
		{name: "multipart, SlowDown", size: parts, with: byMultipart, fault: someTimes("part", 0, 2, slowDown)},
		{name: "multipart, lost reply to a part", size: parts, with: byMultipart, fault: someTimes("part", 1, 1, lost)},
		{name: "multipart, lost part", size: parts, with: byMultipart, fault: someTimes("part", 1, 1, &canned{cut: true})},
		{name: "multipart, lost start", size: parts, with: byMultipart, fault: someTimes("initiate", 0, 1, lost)},
		{name: "multipart, lost completion", size: parts, with: byMultipart, fault: someTimes("complete", 0, 1, lost)},
		{name: "multipart, 403", size: parts, with: byMultipart, fault: someTimes("part", 0, allOfThem, noRightXML), want: session.ErrPermission},

		// A parallel composite upload.
		{name: "compose", size: partsLarge, with: byParts},
		{name: "compose, 503", size: partsLarge, with: byParts, fault: someTimes("compose", 0, 1, backendError)},
		{name: "compose, lost reply", size: partsLarge, with: byParts, fault: someTimes("compose", 0, 1, lost)},
		{name: "compose, a part in trouble", size: partsLarge, with: byParts, fault: someTimes("put", 2, 3, backendError)},
		{name: "compose, 403", size: partsLarge, with: byParts, fault: someTimes("compose", 0, allOfThem, noRight), want: session.ErrPermission},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, stateDir := testsize.DiskDir(t), testsize.MemDir(t)
			synctest.Test(t, func(t *testing.T) {
				service, client := newRecordedService(t)
				service.fault = test.fault
				if test.service != nil {
					test.service(service)
				}
				store, err := state.OpenDir(stateDir)
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				opts := &upload.Options{Endpoint: "http://gcs.test", Store: store}
				test.with(opts)
				up, err := upload.New(client, opts)
				if err != nil {
					t.Fatal(err)
				}
				s := spec
				if test.spec != nil {
					test.spec(&s)
				}
				content := data(test.size)
				_, err = up.File(t.Context(), (&world{t: t, dir: dir}).file(content), s)
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Fatalf("%v, want %v", err, test.want)
				}
				service.mu.Lock()
				defer service.mu.Unlock()
				o := service.objects["obj"]
				switch {
				case test.want == nil && (o == nil || !bytes.Equal(o.content, content)):
					t.Errorf("there is no right object")
				case test.want != nil && o != nil && string(o.content) != "other":
					t.Errorf("there is an object of %d bytes", len(o.content))
				case test.want == nil && len(service.objects) > 1:
					t.Errorf("%d objects are left", len(service.objects)-1)
				}
			})
		})
	}
}

// create is a precondition: there must be no object.
func create(s *upload.Spec) { s.IfGenerationMatch = new(int64) }
