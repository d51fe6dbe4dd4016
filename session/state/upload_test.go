package state_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
	"gcsup/session/state"
)

const q = chunk.Granularity

// testKey returns a key of 32 equal bytes.
func testKey(t testing.TB, b byte) session.EncryptionKey {
	k, err := session.NewEncryptionKey(bytes.Repeat([]byte{b}, 32))
	require.NoError(t, err)
	return k
}

// sample returns a saved upload with all fields that can be set together.
func sample(t testing.TB) *state.Upload {
	generation, metageneration := int64(0), int64(3)
	return &state.Upload{
		ID: "a1-B_2", Endpoint: session.DefaultEndpoint,
		Spec: session.Spec{
			Bucket: "bucket", Object: "dir/ö \"x\" <&>.bin", ContentType: "text/plain", ContentEncoding: "gzip",
			ContentDisposition: "inline", ContentLanguage: "de", CacheControl: "no-store", StorageClass: "NEARLINE",
			Metadata: map[string]string{"a": "1", "b": "\u2028"}, UserProject: "p",
			CustomTime: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), TemporaryHold: true, EventBasedHold: true,
			Retention:         &session.Retention{Mode: session.RetentionUnlocked, RetainUntil: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)},
			Contexts:          &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{"k": {Value: "v"}}},
			ACL:               []session.ACLRule{{Entity: "domain-example.com", Role: session.RoleReader, Domain: "example.com", ProjectTeam: &session.ProjectTeam{Team: "x"}}},
			MD5:               bytes.Repeat([]byte{7}, 16),
			CRC32C:            new(uint32(0)),
			EncryptionKey:     testKey(t, 's').WithoutSecret(),
			IfGenerationMatch: &generation, IfMetagenerationMatch: &metageneration, NoClobber: true,
		},
		Session: state.Session{
			URI: secrettest.URI(session.DefaultEndpoint), Created: time.Date(2026, 11, 21, 9, 36, 58, 123456789, time.UTC),
			Committed: q, HighWater: 2 * q, Restarts: 2, RejectedAt: 1 + q,
			Checkpoints: []chunk.Checkpoint{{Offset: 0}, {Offset: 32 << 20, CRC32C: 1<<32 - 1}},
		},
		SourcePath: "/data/ü.img", Source: chunk.Identity{Size: 5 << 40, ModTimeNS: 1, ChangeTimeNS: 2, Device: 1<<64 - 1, Inode: 4},
		MovedTo: "n1", MovedFrom: "n2",
	}
}

// same reports whether two saved uploads are equal, including the secret.
func same(t testing.TB, a, b *state.Upload) bool {
	t.Helper()
	x, err := state.Encode(a)
	require.NoError(t, err)
	y, err := state.Encode(b)
	require.NoError(t, err)
	return bytes.Equal(x, y)
}

// encoded returns a saved upload after an edit, with a valid digest, as a writer
// of the file could plant it.
func encoded(t testing.TB, edit func(map[string]any)) []byte {
	t.Helper()
	data, err := state.Encode(sample(t))
	require.NoError(t, err)
	var envelope, saved map[string]any
	for _, step := range []func() error{
		func() error { return unmarshal(data, &envelope) },
		func() error {
			raw, err := json.Marshal(envelope["upload"])
			return errors.Join(err, unmarshal(raw, &saved))
		},
	} {
		require.NoError(t, step())
	}
	edit(saved)
	raw, err := json.Marshal(saved)
	require.NoError(t, err)
	return seal(1, raw)
}

func unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

func seal(version int, saved []byte) []byte {
	return fmt.Appendf(nil, `{"v":%d,"sha256":"%x","upload":%s}`, version, sha256.Sum256(saved), saved)
}

// TestDamagedUploads checks that Decode detects each truncation and each flipped
// bit, or returns the same saved upload.
func TestDamagedUploads(t *testing.T) {
	saved := sample(t)
	data, err := state.Encode(saved)
	require.NoError(t, err)
	identical := 0
	try := func(what string, damaged []byte) {
		got, err := state.Decode(damaged)
		switch {
		case err == nil && same(t, got, saved):
			identical++
		case err == nil:
			t.Errorf("%s: Decode returns another Upload: %+v", what, got)
		case errors.Is(err, state.ErrVersion) && bytes.HasPrefix(damaged, []byte(`{"v":`)) && damaged[5] != '1':
			// The damage is in the version. No other damage looks like a newer
			// program.
		case !errors.Is(err, state.ErrCorrupt):
			t.Errorf("%s: %v, want ErrCorrupt", what, err)
		case secrettest.In(err.Error()):
			t.Errorf("%s: %v: contains the secret", what, err)
		}
	}
	for n := range len(data) {
		if testing.Short() && n%4 != 0 {
			continue
		}
		try(fmt.Sprintf("cut to %d bytes", n), data[:n])
		try(fmt.Sprintf("without byte %d", n), append(bytes.Clone(data[:n]), data[n+1:]...))
		zeroed := bytes.Clone(data)
		clear(zeroed[n:])
		try(fmt.Sprintf("zeros from %d", n), zeroed)
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[n] ^= 1 << bit
			try(fmt.Sprintf("bit %d of byte %d", bit, n), flipped)
		}
	}
	for _, more := range []string{"x", "{}", "}", "]", "null", string(data), "\x00"} {
		if _, err := state.Decode(append(bytes.Clone(data), more...)); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("followed by %.10q: %v, want ErrCorrupt", more, err)
		}
	}
	t.Logf("%d bytes; %d of the damages changed nothing (white space, case of a key)", len(data), identical)
	if identical > 20 {
		t.Errorf("%d damages changed nothing: the digest does not cover them", identical)
	}
}

// TestPlantedUploads checks that Decode refuses invalid saved uploads with a valid
// digest.
func TestPlantedUploads(t *testing.T) {
	set := func(key string, value any) func(map[string]any) { return func(m map[string]any) { m[key] = value } }
	drop := func(key string) func(map[string]any) { return func(m map[string]any) { delete(m, key) } }
	spec := func(key string, value any) func(map[string]any) {
		return func(m map[string]any) { m["spec"].(map[string]any)[key] = value }
	}
	checkpoints := func(offsets ...int64) func(map[string]any) {
		var list []any
		for _, o := range offsets {
			list = append(list, map[string]any{"offset": o, "crc32c": 0})
		}
		return set("checkpoints", list)
	}
	zipped := func(state map[string]any) func(map[string]any) {
		return func(m map[string]any) {
			spec("gzip", true)(m)
			spec("content_encoding", "")(m)
			m["gzip"] = state
		}
	}
	stream := func(more func(map[string]any)) func(map[string]any) {
		return func(m map[string]any) {
			for _, key := range []string{"source_path", "source", "session_uri", "moved_to", "moved_from"} {
				drop(key)(m)
			}
			m["spool"] = map[string]any{"dir": "/spool"}
			more(m)
		}
	}
	parted := func(parts map[string]any) func(map[string]any) {
		return func(m map[string]any) {
			for _, key := range []string{"source_path", "source", "session_uri", "moved_to", "moved_from", "committed", "high_water", "checkpoints"} {
				drop(key)(m)
			}
			m["source_identity"], parts["over"], parts["size"] = "-", true, 0
			m["parts"] = parts
		}
	}
	inParts := func(parts map[string]any) func(map[string]any) {
		return stream(func(m map[string]any) {
			for _, key := range []string{"committed", "high_water", "checkpoints"} {
				drop(key)(m)
			}
			parts["size"] = 20 * q
			m["parts"] = parts
		})
	}
	zippedParts := func(m map[string]any) {
		for _, key := range []string{"session_uri", "committed", "high_water", "checkpoints"} {
			drop(key)(m)
		}
		zipped(map[string]any{"source": map[string]any{"offset": 5, "crc32c": 0}})(m)
		m["parts"] = map[string]any{"upload_uri": "x", "size": 20 * q, "list": []any{map[string]any{"size": 20 * q}}}
	}
	sizes := func(sizes ...int) (list []any) {
		for _, n := range sizes {
			list = append(list, map[string]any{"size": n})
		}
		return list
	}
	made := []any{map[string]any{"generation": 5, "crc32c": 7}}
	for _, edit := range []func(map[string]any){
		parted(map[string]any{"upload_uri": "x"}), parted(map[string]any{"upload_uri": "x", "prefix": "p-", "list": made}), parted(map[string]any{"prefix": "p-"}),
		inParts(map[string]any{"upload_uri": "x"}), inParts(map[string]any{"upload_uri": "x", "over": true, "list": sizes(20*q, 24*q, 1)}),
		func(map[string]any) {}, stream(func(map[string]any) {}), stream(set("source_identity", "x")), zipped(map[string]any{"source": map[string]any{"offset": 5, "crc32c": 0}}), zippedParts,
		func(m map[string]any) { // the source is less than what it is compressed to
			zipped(map[string]any{"size": 32 << 20, "source": map[string]any{"offset": 5, "crc32c": 7}})(m)
			m["source"] = map[string]any{"size": 5}
		},
	} {
		if _, err := state.Decode(encoded(t, edit)); err != nil {
			t.Fatalf("valid: %v", err)
		}
	}
	for name, edit := range map[string]func(map[string]any){
		"a stream with a path":        stream(set("source_path", "/x")),
		"a stream that moved":         stream(set("moved_to", "x")),
		"a stream without a spool":    stream(set("spool", map[string]any{})),
		"parts without a name":        parted(map[string]any{"upload_uri": "x", "list": made}),
		"parts that seek an object":   parted(map[string]any{"upload_uri": "x", "seen": 1}),
		"an object that was not made": parted(map[string]any{"prefix": "p-", "list": []any{map[string]any{"crc32c": 7}}}),
		"a stream composed of parts":  inParts(map[string]any{"prefix": "p-"}),
		"a part without a size":       inParts(map[string]any{"upload_uri": "x", "list": sizes(20*q, 0)}),
		"a part with another size":    inParts(map[string]any{"upload_uri": "x", "list": sizes(20*q+1, 1)}),
		"a part below 0":              inParts(map[string]any{"upload_uri": "x", "list": sizes(-1)}),

		"no id":                       drop("id"),
		"an id with a path":           set("id", "../x"),
		"an id with a dot":            set("id", "x.json"),
		"a long id":                   set("id", strings.Repeat("x", 65)),
		"no spec":                     drop("spec"),
		"no bucket":                   spec("bucket", ""),
		"a bucket with a path":        spec("bucket", "a/b"),
		"no object":                   spec("object", ""),
		"no session":                  drop("session_uri"),
		"an empty session":            set("session_uri", ""),
		"no source":                   drop("source_path"),
		"no time":                     drop("created"),
		"committed below 0":           set("committed", -1),
		"committed above sent":        set("committed", 2*q+1),
		"sent above size":             set("high_water", int64(5<<40)+1),
		"a size below 0":              set("source", map[string]any{"size": -1}),
		"a size below what was sent":  set("source", map[string]any{"size": 5}),
		"restarts below 0":            set("restarts", -1),
		"a checkpoint below 0":        checkpoints(-1),
		"a checkpoint above the size": checkpoints(5<<40 + 1),
		"a checkpoint twice":          checkpoints(q, q),
		"checkpoints out of order":    checkpoints(2*q, q),
		"compressed without state":    func(m map[string]any) { spec("gzip", true)(m); spec("content_encoding", "")(m) },
		"state, not compressed":       set("gzip", map[string]any{"source": map[string]any{"offset": 0, "crc32c": 0}}),
		"sent above compressed size":  zipped(map[string]any{"size": 2*q - 1, "source": map[string]any{"offset": 0, "crc32c": 0}}),
		"read above size":             zipped(map[string]any{"source": map[string]any{"offset": int64(5<<40) + 1, "crc32c": 0}}),
		"an offset over 2^63":         set("committed", json.Number("9223372036854775808")),
		"a fraction":                  set("committed", 1.5),
		"another type":                set("committed", "5"),
	} {
		if got, err := state.Decode(encoded(t, edit)); !errors.Is(err, state.ErrCorrupt) || secrettest.In(err.Error()) {
			t.Errorf("%s: %+v, %v, want ErrCorrupt", name, got, err)
		}
	}
}

// TestVersions checks that only the version of a saved upload decides whether a newer program saved it, even if the rest has
// another form. Such a saved upload was set aside as damaged.
func TestVersions(t *testing.T) {
	sealed := encoded(t, func(map[string]any) {})
	for _, form := range []string{
		strings.ReplaceAll(string(sealed), `{"v":1,`, `{"v":%d,`),
		`{"v":%d,"sha256":{"tree":["ab","cd"]},"upload":{}}`,
		`{"v":%d,"sha256":["ab"],"upload":"c2VhbGVk"}`,
		`{"v":%d}`,
	} {
		for version, want := range map[int]error{0: state.ErrCorrupt, 1: state.ErrCorrupt, 2: state.ErrVersion, 1000: state.ErrVersion, -1: state.ErrCorrupt} {
			text := strings.ReplaceAll(form, "%d", fmt.Sprint(version))
			if text == string(sealed) {
				want = nil
			}
			if _, err := state.Decode([]byte(text)); !errors.Is(err, want) || version != 1 && !strings.Contains(err.Error(), fmt.Sprint("version ", version)) {
				t.Errorf("%.60s: %v, want %v, and the version", text, err, want)
			}
		}
	}
}

// TestFieldsOfANewerVersion checks that a saved upload with an unknown field is not
// reported as damaged, unless it is damaged too.
func TestFieldsOfANewerVersion(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"in the upload": func(m map[string]any) { m["tomorrow"] = 1 },
		"in the spec":   func(m map[string]any) { m["spec"].(map[string]any)["tomorrow"] = 1 },
		"in the source": func(m map[string]any) { m["source"].(map[string]any)["tomorrow"] = 1 },
	} {
		data := encoded(t, edit)
		if _, err := state.Decode(data); !errors.Is(err, state.ErrVersion) || errors.Is(err, state.ErrCorrupt) || secrettest.In(err.Error()) {
			t.Errorf("%s: %v, want ErrVersion", name, err)
		}
		data[len(data)/2] ^= 1
		if _, err := state.Decode(data); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("%s, and damaged: %v, want ErrCorrupt", name, err)
		}
	}
	data := append([]byte(`{"tomorrow":1,`), encoded(t, func(map[string]any) {})[1:]...)
	if _, err := state.Decode(data); !errors.Is(err, state.ErrVersion) {
		t.Errorf("around the upload: %v, want ErrVersion", err)
	}
}

// TestUploadIsNotMarshaled checks that json.Marshal of a saved upload returns an
// error.
func TestUploadIsNotMarshaled(t *testing.T) {
	saved := sample(t)
	for _, v := range []any{saved, *saved, []any{saved}, struct{ T state.Upload }{*saved}} {
		if data, err := json.Marshal(v); err == nil || !strings.Contains(err.Error(), "state.Encode") {
			t.Errorf("Marshal(%T) = %s, %v, want an error that names state.Encode", v, data, err)
		}
	}
}

func TestExpires(t *testing.T) {
	saved := state.Upload{Session: state.Session{Created: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}}
	if want := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC); !saved.Expires().Equal(want) {
		t.Errorf("%v, want %v", saved.Expires(), want)
	}
}

// TestAdopt checks that Adopt accepts only a session URI of the configured
// endpoint and bucket.
func TestAdopt(t *testing.T) {
	const g = "https://storage.googleapis.com"
	const rest = "/o?uploadType=resumable&upload_id=" + secrettest.ID
	for _, c := range []struct {
		endpoint, uri string
		ok            bool
	}{
		{g, g + secrettest.Path, true},
		{g, g + "/resumable" + secrettest.Path, true},
		{g, "https://STORAGE.googleapis.com:443" + secrettest.Path, true},
		{"http://localhost:9000", "http://localhost:9000" + secrettest.Path, true},
		{g, "http://storage.googleapis.com" + secrettest.Path, false},
		{g, "https://evil.example" + secrettest.Path, false},
		{g, "https://storage.googleapis.com.evil.example" + secrettest.Path, false},
		{g, "https://storage.googleapis.com:8443" + secrettest.Path, false},
		{g, "https://storage.googleapis.com@evil.example" + secrettest.Path, false},
		{g, "https://me@storage.googleapis.com" + secrettest.Path, false},
		{g, "https://evil.example/?" + g + secrettest.Path, false},
		{g, "https:" + secrettest.Path, false},
		{g, "https:storage.googleapis.com" + secrettest.Path, false},
		{g, "//storage.googleapis.com" + secrettest.Path, false},
		{g, secrettest.Path, false},
		{g, "javascript:alert(1)", false},
		{g, "file:///etc/passwd", false},
		{g, " ", false},
		{g, g + "/upload/storage/v1/b/other" + rest, false},
		{g, g + "/upload/storage/v1/b/bucket2" + rest, false},
		{g, g + "/upload/storage/v1/b/bucket/../other" + rest, false},
		{g, g + "/upload/storage/v1/b/bucket%2Fo/other" + rest, false},
		{g, g + "/storage/v1/b/bucket" + rest, false},
		{g, g + "/upload/storage/v1/b/bucket/o/object?upload_id=" + secrettest.ID, false},
		{g, g + "/upload/storage/v1/b/bucket/o?uploadType=resumable", false},
		{g, g + "/upload/storage/v1/b/bucket/o?upload_id=", false},
		{g, g + "/upload/storage/v1/b/bucket/o#?upload_id=" + secrettest.ID, false},
		{"http://localhost:9000", "http://127.0.0.1:9000" + secrettest.Path, false},
	} {
		saved, err := state.Decode(encoded(t, func(m map[string]any) { m["session_uri"] = c.uri }))
		if err != nil {
			t.Fatalf("%s: %v", c.uri, err)
		}
		client, err := session.NewClient(nil, c.endpoint)
		require.NoError(t, err)
		err = state.Adopt(client, saved)
		if c.ok && err != nil || !c.ok && !errors.Is(err, session.ErrURIMismatch) {
			t.Errorf("%s at %s: %v, want ok = %v", c.uri, c.endpoint, err, c.ok)
		}
		if err != nil && secrettest.In(err.Error()) {
			t.Errorf("%s: %v: contains the secret", c.uri, err)
		}
	}
}

// TestUploadKeepsTheKeySecret checks that a saved upload has only the SHA-256 of a key, which can only be compared.
func TestUploadKeepsTheKeySecret(t *testing.T) {
	k, saved := testKey(t, 'K'), sample(t)
	saved.Spec.EncryptionKey = k
	written, err := state.Encode(saved)
	require.NoError(t, err)
	for name, text := range map[string]string{"saved": string(written), "printed": fmt.Sprintf("%v %+v %#v", saved, saved, *saved)} {
		secret := bytes.Repeat([]byte{'K'}, 32)
		for _, form := range []string{string(secret), base64.StdEncoding.EncodeToString(secret), fmt.Sprintf("%x", secret)} {
			if strings.Contains(text, form) {
				t.Errorf("%s: the key is in %s", name, text)
			}
		}
	}
	back, err := state.Decode(written)
	require.NoError(t, err)
	if got := back.Spec.EncryptionKey; got.HasSecret() || got.IsZero() || got.SHA256() != k.SHA256() {
		t.Errorf("decoded %v", got)
	}
	if c := back.Spec.Conflict(session.Spec{EncryptionKey: k}); c != "" {
		t.Errorf("the same key: %s", c)
	}
	if c := back.Spec.Conflict(session.Spec{EncryptionKey: testKey(t, 'L')}); !strings.Contains(c, k.SHA256()) {
		t.Errorf("another key: %q", c)
	}
	for _, sum := range []any{"x", 5, "AAAA"} {
		if _, err := state.Decode(encoded(t, func(m map[string]any) { m["spec"].(map[string]any)["encryption_key"] = sum })); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("SHA-256 %v: %v, want ErrCorrupt", sum, err)
		}
	}
}

// TestAdoptParts checks that each URI of an upload in parts must belong to the endpoint, and
// the endpoint must be that of the upload.
func TestAdoptParts(t *testing.T) {
	const g = session.DefaultEndpoint
	evil := secrettest.URI("https://evil.example")
	for name, c := range map[string]struct {
		endpoint string
		parts    state.Parts
		ok       bool
	}{
		"no session":             {g, state.Parts{List: make([]state.Part, 2)}, true},
		"one session":            {g, state.Parts{List: []state.Part{{}, {Session: state.Session{URI: secrettest.URI(g)}}}}, true},
		"another endpoint":       {"https://evil.example", state.Parts{List: make([]state.Part, 2)}, false},
		"a part elsewhere":       {g, state.Parts{List: []state.Part{{}, {Session: state.Session{URI: evil}}}}, false},
		"a session as an upload": {g, state.Parts{Upload: secrettest.URI(g)}, false},
		"an upload":              {g, state.Parts{Upload: wiretest.URI(t, g, "/bucket/object?uploadId=x")}, true},
		"of another object":      {g, state.Parts{Upload: wiretest.URI(t, g, "/bucket/other?uploadId=x")}, false},
		"an upload elsewhere":    {g, state.Parts{Upload: wiretest.URI(t, "https://evil.example", "/bucket/object?uploadId=x")}, false},
	} {
		saved := &state.Upload{Endpoint: c.endpoint, Spec: session.Spec{Bucket: "bucket", Object: "object"}, Parts: &c.parts}
		if err := state.Adopt(new(session.Client), saved); c.ok && err != nil || !c.ok && !errors.Is(err, session.ErrURIMismatch) {
			t.Errorf("%s: %v, want ok = %v", name, err, c.ok)
		}
	}
}

// TestUploadIsRedacted checks that the secret is in no text of a saved upload or of its parts.
func TestUploadIsRedacted(t *testing.T) {
	uri := secrettest.URI(session.DefaultEndpoint)
	saved := &state.Upload{ID: "id", Session: state.Session{URI: uri}}
	part := state.Part{Session: saved.Session}
	parts := state.Parts{Upload: uri, List: []state.Part{part}}
	type private struct{ session state.Session }
	secrettest.Check(t, map[string]any{
		"a Upload": saved, "its value": *saved, "a Session": saved.Session, "a pointer to one": &saved.Session, "an unexported field": private{saved.Session},
		"a Part": part, "a pointer to a Part": &part, "Parts": parts, "a pointer to Parts": &parts, "a Upload with Parts": state.Upload{Parts: &parts},
	}, secrettest.In)
}

// FuzzDecode changes the file, and the saved upload inside it with a new digest, which
// a fuzzer cannot guess.
func FuzzDecode(f *testing.F) {
	saved := sample(f)
	data, err := state.Encode(saved)
	require.NoError(f, err)
	var file struct{ Upload json.RawMessage }
	require.NoError(f, json.Unmarshal(data, &file))
	f.Add(data)
	f.Add([]byte(file.Upload))
	f.Add(data[:len(data)/2])
	f.Add(encoded(f, func(m map[string]any) { m["committed"] = -1 }))
	f.Add([]byte(`{"v":1,"sha256":"","upload":null}`))
	f.Add([]byte("null"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, seal(1, data)} {
			saved, err := state.Decode(data)
			if err != nil {
				if !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, state.ErrVersion) || len(err.Error()) > 300 {
					t.Errorf("%v, want ErrCorrupt", err)
				}
				continue
			}
			if saved.Committed < 0 || saved.Committed > saved.HighWater || saved.HighWater > saved.Source.Size {
				t.Errorf("invalid offsets: %+v", saved)
			}
			again, err := state.Encode(saved)
			require.NoError(t, err)
			if back, err := state.Decode(again); err != nil || !same(t, saved, back) {
				t.Errorf("%s\n%+v, %v", data, back, err)
			}
		}
	})
}
