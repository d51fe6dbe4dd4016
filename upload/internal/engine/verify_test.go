package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestVerifyObject checks what an object must have to be that of the source.
func TestVerifyObject(t *testing.T) {
	t.Parallel()
	sum := checksum.Update(0, data(5))
	other := spec
	other.MD5 = []byte("1234567890123456")
	for _, tt := range []struct {
		name string
		o    session.Object
		spec session.Spec
		err  string
	}{
		{"equal", session.Object{Bucket: "bkt", Name: "obj", Size: 5, HasCRC32C: true, CRC32C: sum, MD5: []byte("x")}, spec, ""},
		{"no checksum", session.Object{Bucket: "bkt", Name: "obj", Size: 5}, spec, ""},
		{"no names", session.Object{Size: 5}, spec, ""},
		{"no name", session.Object{Bucket: "bkt", Size: 5}, spec, ""},
		{"the MD5", session.Object{Size: 5, MD5: other.MD5}, other, ""},
		{"no MD5", session.Object{Size: 5}, other, ""},
		{"another size", session.Object{Size: 6, Generation: 7}, spec, "the object at the destination (generation 7) has 6 bytes, the source 5"},
		{"another checksum", session.Object{Size: 5, HasCRC32C: true, Generation: 7}, spec, "the object at the destination (generation 7) has crc32c AAAAAA==, the source " + checksum.Encode(sum)},
		{"another MD5", session.Object{Size: 5, MD5: []byte("x"), Generation: 7}, other, "the object at the destination (generation 7) has MD5 78, expected is 31323334353637383930313233343536"},
		{"another bucket", session.Object{Size: 5, Bucket: "b", Name: "obj"}, spec, "the session made gs://b/obj"},
		{"another name", session.Object{Size: 5, Bucket: "bkt", Name: "o"}, spec, "the session made gs://bkt/o"},
	} {
		o, err := engine.VerifyObject(&tt.o, tt.spec, 5, sum)
		if err == nil && tt.err == "" && o.Bucket == "bkt" && o.Name == "obj" && o.Size == 5 && (o == &tt.o) == (tt.o.Bucket != "" && tt.o.Name != "") {
			continue
		}
		if err == nil || err.Error() != tt.err {
			t.Errorf("%s: %+v, %v, want %s", tt.name, o, err, tt.err)
		}
	}
	inBubble(t, fakegcs.Options{}, func(w *world) {
		_, err := w.transfer(spec, file(data(5)), engine.TransferOptions{}).Verify(w.t.Context(), &session.Object{Size: 6})
		if !errors.Is(err, session.ErrUnexpectedData) {
			t.Errorf("error = %v", err)
		}
	})
}

// TestConfirmReadsTheChecksum checks that the checksum of a new object is read if its reply has none, and only for that object.
func TestConfirmReadsTheChecksum(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		made       session.Object // the generation is added to that of the object, unless it is 0
		gone       bool
		faults     []faults.Fault
		unverified string
		log        string
	}{
		{"known", session.Object{HasCRC32C: true, CRC32C: 3}, false, nil, "", ""},
		{"read", session.Object{Generation: 1}, false, nil, "", "stat 200 done"},
		{"read, and the generation", session.Object{}, false, nil, "", "stat 200 done"},
		{"replaced", session.Object{Generation: 2}, false, nil, "which was replaced or deleted since", "stat 200 done"},
		{"deleted", session.Object{Generation: 1}, true, nil, "which was replaced or deleted since", "stat 404 absent"},
		{"hidden", session.Object{Generation: 1}, false, on(faults.OpGet, status(403)), "which cannot be read: stat: permission denied: 403 Forbidden", "stat 403 fail"},
		{"none", session.Object{Generation: 1}, false, on(faults.OpGet, effect(faults.EffectOmitHash)), "the service does not report the CRC32C of the object", "stat 200 done"},
	} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			now := w.insert(data(5))
			if tt.made.Generation > 0 {
				tt.made.Generation += now.Generation - 1
			}
			if tt.gone {
				_ = w.srv.DeleteObject("bkt", "obj")
			}
			w.add(tt.faults...)
			tt.made.ContentType = "kept"
			o, err := w.requester(spec).Confirm(w.t.Context(), &tt.made)
			w.want(nil, nil, tt.log)
			if (err == nil) != (tt.unverified == "") || err != nil && !hasSuffix(err, tt.unverified) || o.ContentType != "kept" {
				t.Errorf("%s: %v", tt.name, err)
			}
			if read := tt.log != "" && err == nil; read && (!o.HasCRC32C || o.CRC32C != now.CRC32C || o.Generation != now.Generation || o.Size != 5) || !read && o != &tt.made {
				t.Errorf("%s: %+v", tt.name, o)
			}
		})
	}
}

// TestSourceErrors checks that the error of a source is the interruption if there is one, and that a changed source has one text.
func TestSourceErrors(t *testing.T) {
	t.Parallel()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := engine.SourceFailed(done, io.EOF); !errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		t.Errorf("interrupted: %v", err)
	}
	if err := engine.SourceFailed(t.Context(), io.EOF); err != io.EOF {
		t.Errorf("error = %v", err)
	}
	if err := engine.SourceError(fmt.Errorf("x: %w", chunk.ErrChanged)); !errors.Is(err, chunk.ErrChanged) || !hasSuffix(err, "(nothing more of it was sent)") {
		t.Errorf("changed: %v", err)
	}
}

func hasSuffix(err error, text string) bool { return strings.HasSuffix(err.Error(), text) }
