"""`FileFence`: files that are replaced whole under a fence, on a local file system (D6).

What holds: a file is written aside, and renamed into place under a lock once its token was compared and stored. However
a writer ends, be it by kill -9 or a power cut, the old content or the new one is there, whole, and no older token gets
in afterwards. Storing the mark decides a write. The mark names the file that was written aside, and whoever comes next
finishes that rename, or undoes the write where the rename cannot be made; so a write that is refused as repeated is in
place.

What does not: it is one file a write. A process that is stopped during the few milliseconds in which it holds the lock
keeps the next owner out until it goes on or is killed; waiting is bounded, and the error names it. Whoever has the old
file open goes on reading it. Programs that write without the fence are not seen by it. A restored backup of the folder
brings its old marks back, and whoever removes `.tenure-fence` removes them; a fence in use notices and refuses.

To be configured: a folder on a local file system, with no other mounted inside, where all writers run as one user.
"""

from tenure.fences.files.fence import OWN_FOLDER, FileFence

__all__ = ["OWN_FOLDER", "FileFence"]
