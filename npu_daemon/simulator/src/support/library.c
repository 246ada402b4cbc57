// What a shared library of ours begins with: the name under which its static objects are registered for their end.
__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;
