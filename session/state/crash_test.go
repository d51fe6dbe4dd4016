package state

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/powerdisk"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/internal/secret"
)

// powerDisk is a directory on a disk that loses power.
type powerDisk struct{ *powerdisk.Disk }

// newPowerDisk returns a disk with the files of an image, all durable.
func newPowerDisk(image map[string][]byte) powerDisk { return powerDisk{powerdisk.New(image)} }

func (d powerDisk) create(name string) (diskFile, error) { return d.Create(name) }
func (d powerDisk) sync() error                          { return d.Sync(".") }

// images calls look with every possible content of the directory after a power loss now.
func (d powerDisk) images(look func(map[string][]byte)) {
	d.Images(func(after *powerdisk.Disk) { look(after.Files()) })
}

func crashUpload(t *testing.T, committed int64) []byte {
	t.Helper()
	data, err := Encode(&Upload{
		ID: "id", Spec: session.Spec{Bucket: "bucket", Object: "object"}, SourcePath: "/source", Source: chunk.Identity{Size: 1 << 40},
		Session: Session{
			URI:       session.URI(secret.New(session.DefaultEndpoint + "/upload/storage/v1/b/bucket/o?upload_id=x")),
			Created:   time.Unix(1, 0),
			Committed: committed, HighWater: committed,
		},
	})
	require.NoError(t, err)
	return data
}

const crashName, crashTemp = "id" + tokenSuffix, "id" + tempSuffix

// TestPowerLoss simulates a power loss after every operation of a Save, with
// every subset of the unsynced changes. It checks that the disk has the old
// saved upload or the new one, and the new one after Save has returned. Then it checks
// the next Save on the remaining files in the same way.
func TestPowerLoss(t *testing.T) {
	older, newer, newest := crashUpload(t, 1), crashUpload(t, 2), crashUpload(t, 3)
	images := 0
	// save runs a Save on an image, with a power loss after every operation.
	save := func(image map[string][]byte, data []byte, allowed [][]byte, look func(map[string][]byte)) {
		d := newPowerDisk(image)
		check := func(allowed [][]byte) {
			d.images(func(image map[string][]byte) {
				images++
				got, there := image[crashName]
				for _, want := range allowed { // nil means no file
					if there == (want != nil) && bytes.Equal(got, want) {
						look(image)
						return
					}
				}
				t.Errorf("after operation %d: %d bytes, want the old Upload or the new one: %.40q", d.Ops(), len(got), got)
			})
		}
		d.After = func() { check(allowed) }
		if err := replace(d, crashTemp, crashName, data); err != nil {
			t.Errorf("Save: %v", err)
		}
		check([][]byte{data})
	}
	for name, image := range map[string]map[string][]byte{
		"nothing there":                        {},
		"an old Upload":                        {crashName: older},
		"what a crash left":                    {crashName: older, crashTemp: newest[:100]},
		"what a crash left, and no Upload":     {crashTemp: {}},
		"what a crash left, longer than it is": {crashName: older, crashTemp: append(bytes.Clone(newest), newest...)},
	} {
		before := images
		first := image[crashName]
		save(image, newer, [][]byte{first, newer}, func(image map[string][]byte) {
			save(image, newest, [][]byte{image[crashName], newest}, func(map[string][]byte) {})
		})
		t.Logf("%s: %d states of the disk after a power loss", name, images-before)
	}
}

// TestPowerLossInDelete checks that the saved upload is complete or absent after a
// power loss in Delete, and absent after Delete has returned.
func TestPowerLossInDelete(t *testing.T) {
	older := crashUpload(t, 1)
	d := newPowerDisk(map[string][]byte{crashName: older, crashTemp: older[:10]})
	d.After = func() {
		d.images(func(image map[string][]byte) {
			if data := image[crashName]; data != nil && !bytes.Equal(data, older) {
				t.Errorf("%.40q is left", data)
			}
		})
	}
	require.NoError(t, remove(d, crashName, crashTemp))
	d.images(func(image map[string][]byte) {
		if len(image) != 0 {
			t.Errorf("%v is left after the Delete", image)
		}
	})
}

// TestDiskErrors makes each operation of a Save and a Delete fail. It checks
// that the error is returned, the old saved upload stays, and no temporary file is
// left.
func TestDiskErrors(t *testing.T) {
	older, newer := crashUpload(t, 1), crashUpload(t, 2)
	image := map[string][]byte{crashName: older, crashTemp: older[:10]}
	count := func(do func(powerDisk) error) int {
		d := newPowerDisk(image)
		require.NoError(t, do(d))
		return d.Ops()
	}
	save := func(d powerDisk) error { return replace(d, crashTemp, crashName, newer) }
	for n := 1; n <= count(save); n++ {
		d := newPowerDisk(image)
		d.FailAt = n
		if err := save(d); !errors.Is(err, powerdisk.ErrIO) {
			t.Errorf("Save with operation %d failing: %v", n, err)
		}
		left := d.Files()
		got, temp := left[crashName], left[crashTemp]
		if !bytes.Equal(got, older) && !bytes.Equal(got, newer) {
			t.Errorf("Save with operation %d failing leaves %.40q", n, got)
		}
		if n > 2 && temp != nil { // the first two look for an earlier one
			t.Errorf("Save with operation %d failing leaves its temporary file", n)
		}
	}
	del := func(d powerDisk) error { return remove(d, crashName, crashTemp) }
	for n := 1; n <= count(del); n++ {
		d := newPowerDisk(image)
		d.FailAt = n
		if err := del(d); !errors.Is(err, powerdisk.ErrIO) {
			t.Errorf("Delete with operation %d failing: %v", n, err)
		}
	}
}
