package state_test

import (
	"math"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/state"
)

// A saved upload in parts is refused unless its parts are those of the file.
func TestPartsOfSavedUpload(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	byMultipart := func(p *state.Parts) {
		p.Prefix, p.Upload = "", wiretest.URI(t, session.DefaultEndpoint, "/bkt/obj?uploadId=x")
		p.List[0].ETag = `"0123456789abcdef0123456789abcdef"`
	}
	for name, change := range map[string]func(*state.Parts){
		"":                     func(*state.Parts) {},
		"no size":              func(p *state.Parts) { p.Size = 0 },
		"not aligned":          func(p *state.Parts) { p.Size++ },
		"the largest size":     func(p *state.Parts) { p.Size, p.List = chunk.Floor(math.MaxInt64), nil },
		"larger than the file": func(p *state.Parts) { p.Size, p.List = size+chunk.Granularity, p.List[:1] },
		"too few":              func(p *state.Parts) { p.List = p.List[:2] },
		"too many":             func(p *state.Parts) { p.List = append(p.List, state.Part{}) },
		"no way":               func(p *state.Parts) { p.Prefix = "" },
		"generation":           func(p *state.Parts) { p.Seen = -1 },
		"an ETag":              func(p *state.Parts) { p.List[0].ETag = "x" },
		"offsets":              func(p *state.Parts) { p.List[0].Committed = 1 },
		"beyond the part": func(p *state.Parts) {
			p.List[2] = state.Part{Generation: 1, Session: state.Session{Committed: 1<<20 + 1, HighWater: 1<<20 + 1}}
		},
		"bytes without session": func(p *state.Parts) { p.List[0].HighWater = 1 },
		"negative generation":   func(p *state.Parts) { p.List[1].Generation = -1 },
		"multipart":             byMultipart,
		"multipart, a prefix":   func(p *state.Parts) { byMultipart(p); p.Prefix = "x" },
		"multipart, deletes":    func(p *state.Parts) { byMultipart(p); p.DeleteSources = true },
		"multipart, an object":  func(p *state.Parts) { byMultipart(p); p.List[1].Generation = 1 },
		"multipart, bytes":      func(p *state.Parts) { byMultipart(p); p.List[0].HighWater = 1 },
		"multipart, no ETag":    func(p *state.Parts) { byMultipart(p); p.List[0].ETag = "a\n" },
		"checkpoints":           func(p *state.Parts) { p.List[0].Checkpoints = []chunk.Checkpoint{{Offset: 2}, {Offset: 1}} },
	} {
		parts := &state.Parts{Size: 2 << 20, Prefix: "gcsup-parts/x/", List: make([]state.Part, 3)}
		change(parts)
		_, err := state.Encode(&state.Upload{
			ID: "id", Endpoint: session.DefaultEndpoint, Spec: session.Spec{Bucket: "bkt", Object: "obj"}, Session: state.Session{Created: time.Now()},
			SourcePath: "/file", Source: chunk.Identity{Size: size}, Parts: parts,
		})
		if (err == nil) != (name == "" || name == "multipart") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOffsetsOfParts checks what is committed and sent of parts that are finished, under way, or not begun.
func TestOffsetsOfParts(t *testing.T) {
	t.Parallel()
	const kib, mib = 1 << 10, 1 << 20
	underWay := func(committed, handed int64) state.Part {
		return state.Part{Session: state.Session{Committed: committed, Checkpoints: []chunk.Checkpoint{{Offset: 1}, {Offset: handed}}}}
	}
	p := &state.Parts{Size: 2 * mib, List: []state.Part{{ETag: "x"}, underWay(256*kib, mib), underWay(512*kib, 300*kib), {}, {Generation: 1}}}
	const finished, size = 3 * mib, 9 * mib // the last part is shorter
	if committed, sent := p.Offsets(size); committed != finished+768*kib || sent != committed+768*kib {
		t.Errorf("%d bytes are committed, and %d sent", committed, sent)
	}
}
