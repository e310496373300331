package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// StoreMax is the most bytes that JetStream may store here; streams reserve their limits from
// it.
func (e *Server) StoreMax() int64 { return e.storeMax }

// StoreShares divides StoreMax: how much the logs and the blobs may reserve next to the buckets,
// each at most its default.
func (e *Server) StoreShares() (logs, blobs int64) {
	const buckets = 3
	half := (e.storeMax - buckets*bus.BucketBytesMax - bus.ThrottleBytesMax) / 2
	return min(half, bus.DefaultLogBytesMax), min(half, bus.DefaultBlobBytesMax)
}

// storeMax is how much may be stored in dir: what is stored now, in JetStream and in files of logs,
// plus the free space of the disk, less a margin, but at most want.
func storeMax(dir string, want int64) (int64, error) {
	if want == 0 {
		want = DefaultStoreMax
	}
	free, err := statedir.DiskFree(dir)
	if err != nil {
		return 0, err
	}
	used, err := usedBytes(filepath.Join(dir, "jetstream"), statedir.LogsDir(dir))
	return min(want, used+free-min(localserver.DiskMargin, free/2)), err
}

// usedBytes is the size of all files in directories; one that does not exist has none.
func usedBytes(dirs ...string) (used int64, err error) {
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // The file is not there yet, or is being removed: it takes no space.
			}
			if info, err := d.Info(); err == nil {
				used += info.Size()
			}
			return nil
		}))
	}
	return used, err
}
