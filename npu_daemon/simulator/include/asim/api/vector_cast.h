// Cast: conversion between element types.
#pragma once
#include "asim/api/tensor.h"
