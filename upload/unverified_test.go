package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestReplyWithoutChecksum checks each way to make an object, if the last reply has no CRC32C: the object is read and
// compared, or the result reports that it was not.
func TestReplyWithoutChecksum(t *testing.T) {
	t.Parallel()
	content := data(11 * mib)
	parts := func(by upload.JoinBy) func(*upload.Options) {
		return func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 2, MinPart: 5 * mib, Join: by} }
	}
	for _, way := range []struct {
		name string
		last faults.Op
		opts func(*world) func(*upload.Options)
		size int64
		read bool // from a Reader
		gets int  // reads of the metadata before the object is made
	}{
		{"insert", faults.OpInsert, nil, mib, false, 0},
		{"session", faults.OpFinalize, nil, 11 * mib, false, 0},
		{"stream", faults.OpFinalize, nil, 11 * mib, true, 0},
		{"spool", faults.OpFinalize, func(w *world) func(*upload.Options) { return w.spooling(0) }, 11 * mib, true, 0},
		{"compose", faults.OpCompose, func(*world) func(*upload.Options) { return parts(upload.ByCompose) }, 11 * mib, false, 1},
		{"multipart", faults.OpPartsComplete, func(*world) func(*upload.Options) { return parts(upload.ByMultipart) }, 11 * mib, false, 1},
	} {
		for _, tt := range []struct {
			name       string
			read       faults.Action // what happens when the metadata is read
			want       error
			unverified bool
		}{
			{"readable", faults.Action{Effect: faults.EffectGoAway}, nil, false},
			{"not permitted", faults.Action{Effect: faults.EffectStatus, Status: 403}, nil, true},
			{"no checksum there", faults.Action{Effect: faults.EffectOmitHash}, nil, true},
			{"other bytes", faults.Action{Effect: faults.EffectWrongHash}, session.ErrUnexpectedData, false},
		} {
			t.Run(way.name+", "+tt.name, func(t *testing.T) {
				inBubble(t, &fakegcs.Options{Faults: []faults.Fault{
					{Match: faults.Match{Op: way.last, Object: "obj"}, Do: faults.Action{Effect: faults.EffectOmitHash}},
					{Match: faults.Match{Op: faults.OpGet, Object: "obj"}, Skip: way.gets, Times: -1, Do: tt.read},
				}}, func(w *world) {
					up := w.uploader()
					if way.opts != nil {
						up = w.uploader(way.opts(w))
					}
					var res *upload.Result
					var err error
					if content := content[:way.size]; way.read {
						res, err = up.Reader(w.t.Context(), pieces(content), spec)
					} else {
						res, err = up.File(w.t.Context(), w.file(content), spec)
					}
					if !errors.Is(err, tt.want) || (res.Unverified != nil) != tt.unverified || (w.saw(upload.Warning) > 0) != tt.unverified {
						t.Errorf("%v, not verified: %v, %d warnings\n%s", err, res.Unverified, w.saw(upload.Warning), w.trace())
					}
					if err == nil && res.Object.HasCRC32C == tt.unverified {
						t.Errorf("%+v", res.Object)
					}
				})
			})
		}
	}
}
