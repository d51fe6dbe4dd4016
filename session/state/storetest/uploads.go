package storetest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/internal/secret"
	"gcsup/session/state"
)

// uploadID is the secret of the sessions.
const uploadID = "storetest-secret"

// sessionURI returns the URI of a session that does not exist.
func sessionURI() session.URI {
	return session.URI(secret.New(session.DefaultEndpoint + "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=object&upload_id=" + uploadID))
}

// version returns version n of a saved upload. Those of even versions are longer.
func version(id string, n int) *state.Upload {
	t := &state.Upload{
		ID: id, Endpoint: session.DefaultEndpoint, Spec: session.Spec{Bucket: "bucket", Object: "object", Metadata: map[string]string{"key": "value"}},
		Session: state.Session{
			URI: sessionURI(), Created: time.Date(2026, 11, 22, 10, 11, 12, 131415161, time.UTC),
			Committed: int64(n) << 20, HighWater: int64(n) << 20, Checkpoints: []chunk.Checkpoint{{Offset: 1, CRC32C: 2}},
		},
		SourcePath: "/data/disk.img", Source: chunk.Identity{Size: 1 << 40, ModTimeNS: 1, ChangeTimeNS: 2, Device: 3, Inode: 4},
	}
	if n%2 == 0 {
		for i := range 300 {
			t.Checkpoints = append(t.Checkpoints, chunk.Checkpoint{Offset: int64(i+1) << 20, CRC32C: uint32(i)})
		}
	}
	return t
}

// full returns saved uploads. Each field has a value in at least one of them.
func full(t testing.TB) []*state.Upload {
	t.Helper()
	everything := version("everything", 1)
	everything.Endpoint = "https://storage.example.com:8443"
	key, err := session.NewEncryptionKey([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	until := time.Date(2031, 2, 3, 4, 5, 6, 7000, time.UTC)
	everything.Spec = session.Spec{
		Bucket: "bucket", Object: "dir/ö \"x\" <&>\u2028'--.bin", ContentType: "text/plain", ContentEncoding: "br",
		ContentDisposition: "inline", ContentLanguage: "de", CacheControl: "no-store", StorageClass: "NEARLINE",
		Metadata: map[string]string{"a": "1", "ß": "\u2028"}, CustomTime: until, TemporaryHold: true, EventBasedHold: true,
		Retention: &session.Retention{Mode: session.RetentionUnlocked, RetainUntil: until},
		Contexts:  &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{"key": {Value: "value"}}},
		ACL:       []session.ACLRule{{Entity: "user-a@example.com", Role: session.RoleReader}}, EncryptionKey: key.WithoutSecret(), UserProject: "project",
		MD5: []byte("0123456789abcdef"), CRC32C: new(uint32(0)), IfGenerationMatch: new(int64(0)), IfMetagenerationNotMatch: new(int64(7)), NoClobber: true,
	}
	everything.SourceVersion = "v1 \x7f ü"
	everything.Source.Device = 1<<64 - 1
	everything.Committed, everything.HighWater, everything.Restarts, everything.RejectedAt = 1<<39, 1<<39+5, 3, 1<<39+1
	everything.Checkpoints = []chunk.Checkpoint{{Offset: 0}, {Offset: 1 << 39, CRC32C: 1<<32 - 1}}

	bytes := version("bytes", 1)
	bytes.SourcePath = "/data/\xff\xfe\n'\"\\ disk.img" // not UTF-8
	bytes.Spec.PredefinedACL, bytes.Spec.KMSKeyName = "private", "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	bytes.Spec.IfGenerationNotMatch, bytes.Spec.IfMetagenerationMatch = new(int64(1<<62)), new(int64(5))
	bytes.MovedTo, bytes.MovedFrom = "new-id", "old-id"

	gzip := version("gzip", 1)
	gzip.SourcePath, gzip.SourceIdentity = "", "row 17 \u0000 of a table"
	gzip.Spec.Gzip = true
	gzip.Gzip = &state.GzipState{Size: 1 << 30, Source: chunk.Checkpoint{Offset: 1 << 35, CRC32C: 99}}

	parts := version("parts", 1)
	parts.Source.Size, parts.URI = 3<<20+1, session.URI{}
	parts.Committed, parts.HighWater, parts.Checkpoints = 0, 0, nil
	parts.Parts = &state.Parts{
		Size: 1 << 20, Prefix: "gcsup-parts/parts-X/", Seen: 1 << 60, DeleteSources: true, Over: true,
		List: []state.Part{
			{Generation: 1<<62 + 1, CRC32C: 1<<32 - 1, Session: state.Session{Restarts: 2}},
			{Session: state.Session{URI: sessionURI(), Created: until, Committed: 1 << 19, HighWater: 1 << 20, Checkpoints: []chunk.Checkpoint{{Offset: 1 << 19, CRC32C: 7}}, Restarts: 1, RejectedAt: 1<<19 + 1}},
			{Session: state.Session{URI: sessionURI(), Created: until}},
			{},
		},
	}

	multipart := version("multipart", 1)
	multipart.Source.Size, multipart.URI = 11<<20, session.URI{}
	multipart.Committed, multipart.HighWater, multipart.Checkpoints = 0, 0, nil
	multipart.Parts = &state.Parts{
		Size: 5 << 20, Upload: sessionURI(), Seen: 5, Over: true,
		List: []state.Part{{ETag: `"39a59594290b0f9a30662a56d695b71d"`, CRC32C: 1<<32 - 1}, {}, {}},
	}

	stream := version("stream", 1)
	stream.SourcePath, stream.SourceIdentity, stream.Source = "", "rows of a table", chunk.Identity{}
	stream.URI, stream.Committed, stream.HighWater, stream.Checkpoints = session.URI{}, 0, 0, nil
	stream.Spool = &state.Spool{Dir: "/var/spool/gcsup ü"}
	streamParts := *stream
	streamParts.ID = "spooled"
	streamParts.Parts = &state.Parts{
		Size: 5 << 20, Upload: sessionURI(), Joining: true,
		List: []state.Part{{Size: 6 << 20, ETag: `"39a59594290b0f9a30662a56d695b71d"`, CRC32C: 1<<32 - 1}, {Size: 5 << 20}, {Size: 1}},
	}
	zero := version("zero", 1)
	zero.Committed, zero.HighWater = 0, 0
	return []*state.Upload{everything, bytes, gzip, parts, stream, &streamParts, multipart, version("long", 2), zero}
}

// edited returns a saved upload with a changed field in the envelope.
func edited(t testing.TB, data []byte, field string, value any) []byte {
	t.Helper()
	var envelope map[string]json.RawMessage
	err := json.Unmarshal(data, &envelope)
	if err != nil {
		t.Fatal(err)
	}
	if envelope[field], err = json.Marshal(value); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(envelope); err != nil {
		t.Fatal(err)
	}
	return data
}

// damages are ways in which the bytes of a saved upload may be damaged.
var damages = map[string]func(t testing.TB, data []byte) []byte{
	"cut":              func(_ testing.TB, data []byte) []byte { return data[:len(data)/2] },
	"zeros":            func(_ testing.TB, data []byte) []byte { return make([]byte, len(data)) },
	"other text":       func(testing.TB, []byte) []byte { return []byte("not an upload") },
	"twice":            func(_ testing.TB, data []byte) []byte { return slices.Concat(data, data) },
	"of another ID":    func(t testing.TB, _ []byte) []byte { return encode(t, version("another", 1)) },
	"an older version": func(t testing.TB, data []byte) []byte { return edited(t, data, "v", 0) },
	"a changed bit": func(_ testing.TB, data []byte) []byte {
		data = slices.Clone(data)
		data[len(data)/2] ^= 1
		return data
	},
}
